/* The id of a NeMo Gym run (resource attribute nemo.run.id): one for everything that this process stamps. */
#ifndef MOTEL_GYM_RUN_ID_H
#define MOTEL_GYM_RUN_ID_H

/* `given` when it is not blank (NULL ok); else the first of NEMO_GYM_OTEL_RUN_ID, NEMO_LENS_RUN_ID and SLURM_JOB_ID that is not blank;
 * else 12 hexadecimal digits, made once in the life of the process. White space around it is left out. The caller frees it; NULL when
 * out of memory. */
char *gym_run_id(const char *given);

#endif
