# libtorch, as the target torch: from the wheel in the virtual environment .venv, or from the libtorch
# whose share/cmake/Torch is Torch_DIR.
#
# Not by find_package(Torch): the wheel that PyPI gives is built with CUDA, and its configuration
# refuses a machine without the CUDA toolkit, which compiling and running on the CPU does not need.
if(Torch_DIR)
  get_filename_component(torch_root ${Torch_DIR}/../../.. ABSOLUTE)
elseif(SCALECOM_PYTHON)
  # That of the Python which the extension is for, even where pip builds apart from its packages.
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
  execute_process(COMMAND ${Python_EXECUTABLE} -c "import sysconfig; print(sysconfig.get_path('purelib'))"
                  OUTPUT_VARIABLE site_packages OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(torch_root ${site_packages}/torch)
else()
  file(GLOB torch_roots ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  list(POP_FRONT torch_roots torch_root)
endif()
if(NOT EXISTS "${torch_root}/include/torch/csrc/api/include/torch/torch.h")
  if(SCALECOM_PYTHON)
    message(FATAL_ERROR "torch is not installed in ${torch_root}. Install torch 2.11 to 2.13 first: "
                        "the extension is built for the torch that it will run with.")
  endif()
  message(FATAL_ERROR "libtorch was not found. `make setup` installs it into .venv; Torch_DIR names "
                      "another one; SCALECOM_PROGRAM=OFF builds the library alone.")
endif()
message(STATUS "libtorch: ${torch_root}")

add_library(torch INTERFACE IMPORTED)
target_include_directories(torch INTERFACE ${torch_root}/include
                                           ${torch_root}/include/torch/csrc/api/include)
# Before libtorch, or the loader takes std::filesystem from there: wheels are built with an old compiler's
# library, some of whose functions libtorch.so exports, and which crash beside a newer one. The shared one,
# as libtorch has it: a compiler that brings only a static one would put a second into the program, and
# memory that one of them took would be given back to the other.
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.so
                OUTPUT_VARIABLE compilers_libstdcxx OUTPUT_STRIP_TRAILING_WHITESPACE)
if(IS_ABSOLUTE "${compilers_libstdcxx}")
  target_link_libraries(torch INTERFACE stdc++)
else()
  find_library(SCALECOM_LIBSTDCXX NAMES libstdc++.so.6 REQUIRED)
  message(STATUS "The compiler has no shared libstdc++; that of the system: ${SCALECOM_LIBSTDCXX}")
  target_link_libraries(torch INTERFACE ${SCALECOM_LIBSTDCXX})
endif()
foreach(part torch torch_cpu c10)
  add_library(torch::${part} SHARED IMPORTED)
  set_target_properties(torch::${part} PROPERTIES IMPORTED_LOCATION ${torch_root}/lib/lib${part}.so)
  target_link_libraries(torch INTERFACE torch::${part})
endforeach()
# libtorch's own needs (CUDA's libraries lie elsewhere in .venv) are the loader's to find.
target_link_options(torch INTERFACE -Wl,--allow-shlib-undefined)
set(TORCH_LIBRARIES torch)

if(EXISTS ${torch_root}/lib/libtorch_cuda.so)
  set(TORCH_HAS_CUDA ON)
else()
  set(TORCH_HAS_CUDA OFF)
endif()
if(SCALECOM_CUDA STREQUAL "AUTO")
  set(SCALECOM_CUDA ${TORCH_HAS_CUDA})
  include(CheckLanguage)
  if(SCALECOM_CUDA)
    check_language(CUDA)
  endif()
  if(SCALECOM_CUDA AND NOT CMAKE_CUDA_COMPILER)
    message(STATUS "torch has CUDA, but nvcc was not found: models on a GPU are left out")
    set(SCALECOM_CUDA OFF)
  endif()
endif()

if(TORCH_HAS_CUDA)
  if(SCALECOM_CUDA)
    # Operators for GPUs are there once libtorch_cuda is loaded, which no symbol need ask for: some
    # systems' linkers leave out what none does.
    set(CMAKE_LINK_LIBRARY_USING_ALWAYS_LOADED "LINKER:--push-state,--no-as-needed" "<LINK_ITEM>"
                                               "LINKER:--pop-state")
    set(CMAKE_LINK_LIBRARY_USING_ALWAYS_LOADED_SUPPORTED TRUE)
    foreach(part torch_cuda c10_cuda)
      add_library(torch::${part} SHARED IMPORTED)
      set_target_properties(torch::${part} PROPERTIES IMPORTED_LOCATION ${torch_root}/lib/lib${part}.so)
      target_link_libraries(torch INTERFACE $<LINK_LIBRARY:ALWAYS_LOADED,torch::${part}>)
    endforeach()
  endif()
else()
  # A header that only libtorch with CUDA has, and nobody needs.
  target_compile_definitions(torch INTERFACE C10_CUDA_NO_CMAKE_CONFIGURE_FILE)
endif()
