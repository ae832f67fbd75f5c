/* mhd_floor PORT [THREADS]: the floor of libmicrohttpd. Reads request bodies on 127.0.0.1, throws
 * them away and answers 200; the library's own epoll threads (2). */
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct MHD_Response *ok;

static enum MHD_Result swallow(void *cls, struct MHD_Connection *c, const char *url,
                               const char *method, const char *version, const char *data, size_t *n,
                               void **state)
{
    static char started;
    (void)cls, (void)url, (void)method, (void)version, (void)data;
    if (!*state) {
        *state = &started;
        return MHD_YES;
    }
    if (*n == 0)
        return MHD_queue_response(c, 200, ok);
    *n = 0;
    return MHD_YES;
}

static struct MHD_Daemon *start(uint16_t port, unsigned threads)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, swallow, NULL,
                            MHD_OPTION_SOCK_ADDR, &a, MHD_OPTION_THREAD_POOL_SIZE, threads,
                            MHD_OPTION_CONNECTION_LIMIT, 4096u, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)65536, MHD_OPTION_CONNECTION_TIMEOUT, 60u, MHD_OPTION_END);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("libmicrohttpd %s\n", MHD_get_version());
        return 0;
    }
    unsigned long port = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 2;
    if (port == 0 || port > UINT16_MAX) {
        fprintf(stderr, "usage: mhd_floor PORT [THREADS]\n");
        return 2;
    }
    ok = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    if (!ok || !start((uint16_t)port, threads)) {
        perror("MHD_start_daemon");
        return 1;
    }
    pause();
    return 0;
}
