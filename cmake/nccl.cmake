# NCCL, as the target nccl::nccl: that of NCCL_ROOT, of the wheel in the virtual environment .venv
# (nvidia-nccl-cu13, which torch's CUDA wheel brings along), or the system's. Installed with the package.
file(GLOB nccl_wheels ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/nccl)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${NCCL_ROOT} ${nccl_wheels} PATH_SUFFIXES include)
# The wheel has no libnccl.so.
find_library(NCCL_LIBRARY NAMES libnccl.so.2 nccl HINTS ${NCCL_ROOT} ${nccl_wheels} PATH_SUFFIXES lib)
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)
if(NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
  set(NCCL_FOUND TRUE)
  message(STATUS "NCCL: ${NCCL_LIBRARY}")
  if(NOT TARGET nccl::nccl)
    add_library(nccl::nccl SHARED IMPORTED)
    set_target_properties(nccl::nccl PROPERTIES IMPORTED_LOCATION ${NCCL_LIBRARY}
                                                INTERFACE_INCLUDE_DIRECTORIES ${NCCL_INCLUDE_DIR})
  endif()
else()
  set(NCCL_FOUND FALSE)
endif()
