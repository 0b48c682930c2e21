/* How the processes of an attempt are known, wherever they run. */
#pragma once

/* The variable in their environment: its value is the attempt's folder, RUN/attempt-N. */
#define ATTEMPT_MARK "TRAIND_ATTEMPT_DIR"

/* With which a rank ends that has found the disk full, where neither its log nor its events may
 * hold another word. */
#define ATTEMPT_EXIT_NO_SPACE 8
