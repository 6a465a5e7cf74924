# shellcheck shell=bash
# Another clone of the same sources gets the same objects from ccache; a precompiled header is cached
# only when ccache may trust its time stamps and macros. Sourced in the project's folder.
export CCACHE_BASEDIR=$PWD
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
