#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/run/stall_report.h"

Test(stall_report, is_read_as_it_was_written)
{
    for (int phase = STALL_IN_START; phase <= STALL_IN_END; phase++)
        for (int state = STALL_STOPPED; state <= STALL_GETS_ON; state++)
            for (int rank = -1; rank < 2; rank++) {
                struct stall_report line = {.seconds = 12,
                                            .phase = (enum stall_phase)phase,
                                            .state = (enum stall_state)state,
                                            .rank = rank,
                                            .host = "n2.net"};
                struct stall_report back;
                char text[STALL_REPORT_BYTES];
                if ((rank < 0) != (state >= STALL_WAITS) && !(rank >= 0 && state == STALL_WAITS))
                    continue;
                stall_report_print(&line, rank < 0, text);
                cr_assert(stall_report_parse(text, &back), "%s", text);
                cr_assert_eq(back.phase, line.phase, "%s", text);
                cr_assert_eq(back.state, line.state, "%s", text);
                cr_assert_eq(back.rank, line.rank, "%s", text);
                cr_assert_eq(back.seconds, 12, "%s", text);
                cr_assert_str_eq(back.host, "n2.net", "%s", text);
                cr_assert_eq(stall_phase_of(stall_phase_name(line.phase)), line.phase);
            }
}

Test(stall_report, other_lines_are_none)
{
    static const char *const others[] = {
        "",
        "no ",
        "in ",
        "no step",
        "no step for",
        "no step for 12 s; this rank is computing for 12 s",
        "no step for 12 s: rank 1 on n2 is happy",
        "no progress in the kitchen for 12 s on n2: all ranks wait for each other",
        "on step for 12 s on n2: all ranks wait",
    };
    struct stall_report line;

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        cr_assert_not(stall_report_parse(others[i], &line), "%s", others[i]);
}
