#!/bin/bash
#SBATCH --job-name=jaxgpu
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=24:00:00
#SBATCH --signal=TERM@180
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=job-%j.log

# One process a GPU. JAX gives each the GPU of its number on the node, so all tasks of a node must
# see all GPUs of it: no --gpus-per-task. The working folder must be one that all nodes share.

# --signal asks all processes, 180 s before the time is over, to save and to stop.
# --kill-on-bad-exit ends those that are left when one has ended.
srun --kill-on-bad-exit=1 --wait=60 python job.py 32768 100000
code=$?

# 75: another process is gone. 130, 143: asked to stop. 134: process 0, which keeps the register, is
# gone. 137: killed, for want of memory or by the system. In all of these the run goes on when it is
# started again; anything else is an error of the program, and its last lines are above.
case $code in
75 | 130 | 134 | 137 | 143)
    if [ "${SLURM_RESTART_COUNT:-0}" -lt 20 ]; then
        echo "a process ended with $code: back into the queue, to go on from the last checkpoint"
        scontrol requeue "$SLURM_JOB_ID"
    fi
    ;;
esac
exit $code
