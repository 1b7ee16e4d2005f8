#!/usr/bin/env bash
#SBATCH --job-name=mdfsck
#SBATCH --cpus-per-task=4
#SBATCH --mem=4G
#SBATCH --output=mdfsck-%A_%a.log
# One task of a plan in each element of an array. What is missing is what is submitted, so that the same two lines start it and start
# again what was killed, 64 elements at a time:
#
#   export PLAN=/shared/plan
#   sbatch --wait --array="$(mdfsck plan --status "$PLAN" --missing)%64" slurm.sh
#
# Then: mdfsck merge "$PLAN"; if its exit status is 32, there is another round: the same again.
set -euo pipefail
exec mdfsck task "${PLAN:?is the folder of the plan}" env --maxdop "${SLURM_CPUS_PER_TASK:-1}" --memory 2GB --progress none
