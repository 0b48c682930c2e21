#include "client/views/screen.h"

#include <curses.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <wchar.h>

#include "client/cmd.h"
#include "client/views/print.h"

#define TEXT_MAX 4096

static SCREEN *terminal;
static int signals = -1,
           both = -1; /* signals: a signalfd; both: an epoll descriptor for it and stdin */
static int fatal_signal;
static sigset_t signals_before;

static const struct {
    const char *name;
    short number;
} colors[] = {
    {"red",     COLOR_RED    },
    {"green",   COLOR_GREEN  },
    {"yellow",  COLOR_YELLOW },
    {"blue",    COLOR_BLUE   },
    {"cyan",    COLOR_CYAN   },
    {"magenta", COLOR_MAGENTA}
};
#define COLOR_COUNT (sizeof colors / sizeof colors[0])

static int screen_take_signals(struct error *e)
{
    struct epoll_event keys = {.events = EPOLLIN, .data.fd = STDIN_FILENO};
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(&set, numbers[i]);
    sigprocmask(SIG_BLOCK, &set, &signals_before);
    signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    both = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event news = {.events = EPOLLIN, .data.fd = signals};
    if (signals < 0 || both < 0 || epoll_ctl(both, EPOLL_CTL_ADD, STDIN_FILENO, &keys) ||
        epoll_ctl(both, EPOLL_CTL_ADD, signals, &news))
        return error_set_errno(e, errno, "cannot read keys from the terminal");
    return 0;
}

static void screen_leave_signals(void)
{
    if (signals >= 0)
        close(signals);
    if (both >= 0)
        close(both);
    signals = both = -1;
    sigprocmask(SIG_SETMASK, &signals_before, NULL);
}

static void screen_set_up_terminal(void)
{
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(50);
    curs_set(0);
    leaveok(stdscr, TRUE);
    if (client.color && has_colors()) {
        start_color();
        use_default_colors();
        for (size_t i = 0; i < COLOR_COUNT; i++)
            init_pair((short)(i + 1), colors[i].number, -1);
    }
}

int screen_open(struct error *e)
{
    static int at_exit;

    if (screen_take_signals(e)) {
        screen_leave_signals();
        return -(int)e->code;
    }
    terminal = newterm(NULL, stdout, stdin);
    if (!terminal) {
        screen_leave_signals();
        return error_set(e, ERR_UNSUPPORTED, "terminal type \"%s\" is unknown on this machine",
                         getenv("TERM") ? getenv("TERM") : "");
    }
    screen_set_up_terminal();
    if (!at_exit++)
        atexit(screen_close);
    return 0;
}

void screen_close(void)
{
    if (!terminal)
        return;
    endwin();
    delscreen(terminal);
    terminal = NULL;
    screen_leave_signals();
}

int screen_fd(void)
{
    return both;
}

int screen_signal(void)
{
    return fatal_signal;
}

int screen_key(void)
{
    struct signalfd_siginfo news;
    struct winsize size;

    if (read(signals, &news, sizeof news) == sizeof news) {
        if (news.ssi_signo == SIGWINCH) {
            if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
                resize_term(size.ws_row, size.ws_col);
            clearok(stdscr, TRUE);
            return SCREEN_RESIZE;
        }
        fatal_signal = (int)news.ssi_signo;
        return SCREEN_SIGNAL;
    }
    int key = getch();
    switch (key) {
    case ERR:
        return SCREEN_NO_KEY;
    case KEY_UP:
        return SCREEN_UP;
    case KEY_DOWN:
        return SCREEN_DOWN;
    case KEY_ENTER:
    case '\n':
    case '\r':
        return SCREEN_ENTER;
    case 27:
        return SCREEN_ESCAPE;
    default:
        return key;
    }
}

int screen_rows(void)
{
    return LINES;
}

int screen_columns(void)
{
    return COLS;
}

void screen_clear(void)
{
    erase();
}

void screen_show(void)
{
    refresh();
}

/* Converts text to at most this many columns, with a mark at the end if it was truncated; control
 * characters and invalid bytes become '?'. Returns the number of columns used. */
static int screen_fit(const char *text, int columns, wchar_t *out)
{
    mbstate_t state = {0};
    size_t left = strlen(text), bytes;
    int used = 0, before_mark = 0, width;
    wchar_t c, *mark = out;

    for (; left > 0; text += bytes, left -= bytes) {
        bytes = mbrtowc(&c, text, left, &state);
        if (bytes == (size_t)-1 || bytes == (size_t)-2 || bytes == 0) {
            state = (mbstate_t){0};
            bytes = 1;
            c = L'?';
        }
        if ((width = wcwidth(c)) < 0) {
            c = L'?';
            width = 1;
        }
        if (used + width > columns)
            break;
        if (used < columns) {
            mark = out;
            before_mark = used;
        }
        used += width;
        *out++ = c;
    }
    if (left > 0 && columns > 0) {
        out = mark;
        *out++ = terminal_utf8() ? L'…' : L'~';
        used = before_mark + 1;
    }
    *out = L'\0';
    return used;
}

static int screen_put(int row, int column, int width, int style, const char *color,
                      const char *text)
{
    attr_t attributes = (style & SCREEN_BOLD ? A_BOLD : A_NORMAL) |
                        (style & SCREEN_DIM ? A_DIM : A_NORMAL) |
                        (style & SCREEN_REVERSE ? A_REVERSE : A_NORMAL);
    short pair = 0;
    wchar_t wide[TEXT_MAX];
    int capacity = COLS - column;

    if (row < 0 || row >= LINES || column < 0 || capacity <= 0)
        return column;
    int used = screen_fit(text, width < 0 || width > capacity ? capacity : width, wide);
    for (size_t i = 0; client.color && color && i < COLOR_COUNT; i++)
        if (strcmp(color, colors[i].name) == 0)
            pair = (short)(i + 1);
    attr_set(attributes, pair, NULL);
    mvaddwstr(row, column, wide);
    attr_set(A_NORMAL, 0, NULL);
    return column + used;
}

int screen_text(int row, int column, int width, int style, const char *color, const char *format,
                ...)
{
    char text[TEXT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return screen_put(row, column, width, style, color, text);
}

void screen_text_right(int row, int end, int style, const char *text)
{
    wchar_t wide[TEXT_MAX];
    int width = screen_fit(text, COLS, wide);

    screen_put(row, end > width ? end - width : 0, width, style, NULL, text);
}
