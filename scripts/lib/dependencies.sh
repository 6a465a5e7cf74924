# shellcheck shell=bash
# What the project needs from the system: one table, from which come the list for apt, the checks on
# systems without apt, and the list printed for people. Sourced by scripts/setup.

# Where the data set lies; on systems without the Debian package, wherever it was put.
fashion_mnist=${SCALECOM_FASHION_MNIST:-/usr/share/datasets/fashion-mnist}

# set | Debian 12 package | how to see that it is there without dpkg | what it is
# Sets build on each other: quickstart < test < tidy, and test < fuzz.
dependencies="\
quickstart|g++|command g++|C++20 compiler (GCC 12 or later)
quickstart|cmake|command cmake|CMake 3.25 or later
quickstart|ninja-build|command ninja|Ninja
quickstart|ccache|command ccache|ccache
quickstart|libopenmpi-dev|command mpicxx|Open MPI, to compile with
quickstart|openmpi-bin|command mpirun|Open MPI, to run with
quickstart|libcli11-dev|header CLI/CLI.hpp|CLI11 2.1 or later
quickstart|libfmt-dev|header fmt/core.h|fmt 9 or later
quickstart|nlohmann-json3-dev|header nlohmann/json.hpp|nlohmann-json 3.11 or later
quickstart|zlib1g-dev|header zlib.h|zlib
quickstart|libsentencepiece-dev|header sentencepiece_trainer.h|sentencepiece 0.1.97 or later
quickstart|python3|command python3|Python 3.10 or later
quickstart|python3-venv|module ensurepip|Python's venv and ensurepip
quickstart|ca-certificates|none|root certificates, for pip
quickstart|dataset-fashion-mnist|file $fashion_mnist/train-images-idx3-ubyte.gz|the Fashion-MNIST files
test|libgtest-dev|header gtest/gtest.h|GoogleTest 1.12 or later
test|clang-format|command clang-format|clang-format 14
test|chromium|none|Chromium, for the tests of the drawn report
tidy|clang-tidy|command run-clang-tidy|clang-tidy 14
fuzz|clang|command clang++|clang 14 or later
fuzz|libclang-rt-14-dev|none|libFuzzer and the sanitizers' libraries for it"

# rows SET: the rows of the table that SET needs.
rows() {
  case $1 in
    quickstart) grep '^quickstart|' <<<"$dependencies" ;;
    test) grep -E '^(quickstart|test)\|' <<<"$dependencies" ;;
    tidy) grep -E '^(quickstart|test|tidy)\|' <<<"$dependencies" ;;
    fuzz) grep -E '^(quickstart|test|fuzz)\|' <<<"$dependencies" ;;
    *) echo "scripts/setup: no set of dependencies '$1' (quickstart, test, tidy, fuzz)" >&2; return 2 ;;
  esac
}

# is_present KIND NAME: whether a dependency is there, whoever installed it.
is_present() {
  case $1 in
    command) command -v "$2" >/dev/null ;;
    header) echo "#include <$2>" | g++ -std=c++20 -E -x c++ - >/dev/null 2>&1 ;;
    module) python3 -c "import $2" 2>/dev/null ;;
    file) [[ -e $2 ]] ;;
    none) true ;;
  esac
}

# missing_by_presence SET: the packages (Debian's names) whose content is not to be found.
missing_by_presence() {
  local package probe kind name
  while IFS='|' read -r _ package probe _; do
    read -r kind name <<<"$probe"
    is_present "$kind" "$name" || echo "$package"
  done < <(rows "$1")
}

# missing_by_dpkg SET: the Debian packages that are not installed.
missing_by_dpkg() {
  local package
  while IFS='|' read -r _ package _; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
      echo "$package"
  done < <(rows "$1")
}

# print_dependencies SET: the list for doing it by hand.
print_dependencies() {
  local package what
  echo "Everything that is needed (Debian 12's package: what it is):"
  while IFS='|' read -r _ package _ what; do
    printf '  %-22s %s\n' "$package:" "$what"
  done < <(rows "$1")
  printf '  %-22s %s\n' "in .venv, by pip:" "$(grep -v '^#' scripts/requirements.txt | xargs)"
  echo "By hand: docs/dependencies.md. After installing by hand, SCALECOM_SKIP_SYSTEM=1 makes the"
  echo "scripts look for the things themselves, not for Debian's packages."
}
