#include "client/settings.h"

struct client_settings client = {.server = "http://127.0.0.1:7077"};
