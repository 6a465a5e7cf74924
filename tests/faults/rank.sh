#!/bin/bash
# Starts a rank, which leaves its process's number and what it says where its job finds them.
rank=${RANK:-$OMPI_COMM_WORLD_RANK}
notes=$SCALECOM_FAULTS_NOTES
echo $$ > "$notes/$rank.part"
mv "$notes/$rank.part" "$notes/$rank.pid"
exec "$@" 2> "$notes/$rank.err"
