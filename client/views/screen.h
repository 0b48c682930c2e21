/* Full-screen terminal output with ncurses: alternate screen, keys, colours. Only one at a time.
 * While it is open, SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGWINCH are read as keys, so screen_close
 * always restores the terminal. Rows and columns count from 0; text that does not fit is truncated,
 * with a mark. */
#pragma once

#include "common/error.h"

int screen_open(struct error *e);
void screen_close(void); /* no-op if it is closed */

int screen_fd(void);

#define SCREEN_NO_KEY (-1)
#define SCREEN_RESIZE (-2) /* redraw everything */
#define SCREEN_SIGNAL (-3) /* screen_signal() returns it */
#define SCREEN_UP     0x1001
#define SCREEN_DOWN   0x1002
#define SCREEN_ENTER  0x1003
#define SCREEN_ESCAPE 0x1004
int screen_key(void); /* returns a character or one of the above; does not block */
int screen_signal(void);

int screen_rows(void);
int screen_columns(void);
void screen_clear(void);
void screen_show(void); /* writes the changes to the terminal */

enum screen_style { SCREEN_PLAIN = 0, SCREEN_BOLD = 1, SCREEN_DIM = 2, SCREEN_REVERSE = 4 };

/* width: maximum number of columns, negative: to the end of the row. style: bits of screen_style.
 * color: libsmartcols' name, or NULL. Returns the column after the text. */
int screen_text(int row, int column, int width, int style, const char *color, const char *format,
                ...) __attribute__((format(printf, 6, 7)));

/* Does the same, ending before the column `end`. */
void screen_text_right(int row, int end, int style, const char *text);
