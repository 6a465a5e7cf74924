# The CMake package: find_package(scalecom), scalecom::scalecom.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/scalecom)

# Before 1.0 every minor version may change the interface, so it is the one in the file name.
set_target_properties(scalecom PROPERTIES VERSION ${PROJECT_VERSION}
                                          SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
# NCCL stays where it is, in .venv for example.
if(SCALECOM_NCCL AND NCCL_FOUND)
  get_filename_component(nccl_folder ${NCCL_LIBRARY} DIRECTORY)
  set_target_properties(scalecom PROPERTIES INSTALL_RPATH ${nccl_folder})
endif()
install(TARGETS scalecom EXPORT scalecom COMPONENT library
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# What users include, and what those headers include in turn. All others are the library's own affair, or show
# types of MPI, CUDA or NCCL.
set(public_headers
    core/aligned_array core/array core/buffer core/cuda/runtime core/device core/dtype core/error core/stream
    core/thread_pool
    layout/layout layout/rates layout/selection
    kernels/elementwise
    comm/collectives comm/communicator comm/fabric comm/hybrid/hybrid comm/inproc/inproc comm/link comm/mpi/mpi
    comm/nccl/nccl comm/together comm/traffic
    methods/learner methods/loss_scale methods/method
    state/file state/memories state/method_state state/safetensors
    plan/buckets plan/calibrate plan/kernels plan/model plan/network plan/outlook plan/schedule plan/units)
foreach(header ${public_headers})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/scalecom/${header}.h COMPONENT library
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/scalecom/${folder})
endforeach()
install(EXPORT scalecom COMPONENT library DESTINATION ${package_folder}
        NAMESPACE scalecom:: FILE scalecomTargets.cmake)

# Who links a static library links what it was built with; a shared one brings that along.
get_target_property(library_type scalecom TYPE)
get_target_property(links scalecom LINK_LIBRARIES)
set(package_has_mpi OFF)
set(package_links_mpi OFF)
if(MPI::MPI_CXX IN_LIST links)
  set(package_has_mpi ON)
  if(library_type STREQUAL STATIC_LIBRARY)
    set(package_links_mpi ON)
  endif()
endif()
foreach(part cuda nccl)
  set(package_links_${part} OFF)
endforeach()
if(library_type STREQUAL STATIC_LIBRARY)
  if(CUDA::cudart_static IN_LIST links)
    set(package_links_cuda ON)
  endif()
  if(nccl::nccl IN_LIST links)
    set(package_links_nccl ON)
    install(FILES ${CMAKE_CURRENT_LIST_DIR}/nccl.cmake COMPONENT library
            DESTINATION ${package_folder})
  endif()
endif()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/scalecomConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/scalecomConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/scalecomConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/scalecomConfig.cmake
              ${PROJECT_BINARY_DIR}/scalecomConfigVersion.cmake
        COMPONENT library DESTINATION ${package_folder})

if(SCALECOM_PROGRAM)
  # libtorch stays where it is, which CMake would not take over by itself for a folder of the tree.
  set_target_properties(
    scalecom_program PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON
                                INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};${torch_root}/lib;${nccl_folder}")
  if(SKBUILD)
    install(TARGETS scalecom_program DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
  else()
    install(TARGETS scalecom_program COMPONENT program)
  endif()
endif()
