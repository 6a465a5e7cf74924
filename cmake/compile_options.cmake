# What every target of this project is compiled with.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(scalecom_compile_options INTERFACE)
# Contraction off: the CPU and the GPU, and every instruction set, give the same bits.
target_compile_options(scalecom_compile_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -ffp-contract=off>)
if(SCALECOM_WERROR)
  target_compile_options(scalecom_compile_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
# A backend that is not built is a stub, which uses no field of its class.
target_compile_options(scalecom_compile_options INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-unused-private-field>)
if(SCALECOM_SANITIZE)
  add_compile_options(-fsanitize=${SCALECOM_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SCALECOM_SANITIZE})
endif()
if(SCALECOM_FUZZ)
  # What is compared and branched on is seen in all of the code, not in the fuzzers alone.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
