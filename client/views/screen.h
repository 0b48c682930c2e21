/*
 * The whole terminal, by ncurses: alternate screen, keys, colours. One at a time. While it is open
 * SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGWINCH are taken as news to be read, so that every way out
 * goes by screen_close, which gives the terminal back as it was. Rows and columns count from 0;
 * what has no room is cut, which a final mark shows.
 */
#pragma once

#include "common/error.h"

int screen_open(struct error *e);
void screen_close(void); /* fine when it is closed */

/* Readable when screen_key has something. */
int screen_fd(void);

#define SCREEN_NO_KEY (-1)
#define SCREEN_RESIZE (-2) /* all must be drawn anew */
#define SCREEN_SIGNAL (-3) /* screen_signal() ends us */
#define SCREEN_UP     0x1001
#define SCREEN_DOWN   0x1002
#define SCREEN_ENTER  0x1003
#define SCREEN_ESCAPE 0x1004
int screen_key(void); /* a character, or one of these; does not wait */
int screen_signal(void);

int screen_rows(void);
int screen_columns(void);
void screen_clear(void);
void screen_show(void); /* brings what was written to the terminal */

enum screen_style { SCREEN_PLAIN = 0, SCREEN_BOLD = 1, SCREEN_DIM = 2, SCREEN_REVERSE = 4 };

/* Writes in at most width columns (below 0: to the end of the row); style: of screen_style, or'ed.
 * color: as libsmartcols names it, or NULL. Returns the column behind it. */
int screen_text(int row, int column, int width, int style, const char *color, const char *format,
                ...) __attribute__((format(printf, 6, 7)));

/* The same, ending at the column `end` (not included). */
void screen_text_right(int row, int end, int style, const char *text);
