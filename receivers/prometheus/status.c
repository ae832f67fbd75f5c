/* RFC 9110, 15, and RFC 6585: the reason phrases of answers that a target may give. */
#include "receivers/prometheus/prometheus.h"

const char *prom_status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } known[] = {{201, "Created"},
                 {202, "Accepted"},
                 {203, "Non-Authoritative Information"},
                 {204, "No Content"},
                 {206, "Partial Content"},
                 {300, "Multiple Choices"},
                 {301, "Moved Permanently"},
                 {302, "Found"},
                 {303, "See Other"},
                 {304, "Not Modified"},
                 {307, "Temporary Redirect"},
                 {308, "Permanent Redirect"},
                 {400, "Bad Request"},
                 {401, "Unauthorized"},
                 {402, "Payment Required"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {406, "Not Acceptable"},
                 {407, "Proxy Authentication Required"},
                 {408, "Request Timeout"},
                 {409, "Conflict"},
                 {410, "Gone"},
                 {413, "Request Entity Too Large"},
                 {414, "Request URI Too Long"},
                 {418, "I'm a teapot"},
                 {421, "Misdirected Request"},
                 {429, "Too Many Requests"},
                 {500, "Internal Server Error"},
                 {501, "Not Implemented"},
                 {502, "Bad Gateway"},
                 {503, "Service Unavailable"},
                 {504, "Gateway Timeout"},
                 {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (known[i].status == status)
            return known[i].text;
    return "";
}
