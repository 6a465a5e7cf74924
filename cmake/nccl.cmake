# NCCL, as NCCL_INCLUDE_DIR and NCCL_LIBRARY: that of NCCL_ROOT, of the wheel in the virtual environment
# .venv (nvidia-nccl-cu13, which torch's CUDA wheel brings along), or the system's.
file(GLOB nccl_wheels ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/nccl)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${NCCL_ROOT} ${nccl_wheels} PATH_SUFFIXES include)
# The wheel has no libnccl.so.
find_library(NCCL_LIBRARY NAMES libnccl.so.2 nccl HINTS ${NCCL_ROOT} ${nccl_wheels} PATH_SUFFIXES lib)
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)
if(NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
  set(NCCL_FOUND TRUE)
  message(STATUS "NCCL: ${NCCL_LIBRARY}")
else()
  set(NCCL_FOUND FALSE)
  message(STATUS "NCCL was not found: the nccl communicator will say so when asked for")
endif()
