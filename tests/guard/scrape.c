/* A page of 5,000 series: the first scrape of a target, and one of a target whose series are known.
 */
#include "receivers/prometheus/prometheus.h"
#include "tests/guard/guard.h"

extern const struct component_type receiver_prometheus;

static struct made owner;
static struct scraper scraper;
static struct job job;
static struct target *target;
static struct buf *pages[2]; /* that come in turn: some values change from one scrape to the next */
static unsigned scrapes;

static void nobody(void *ctx)
{
    (void)ctx;
}

static void make_target(void)
{
    struct target_spec spec;
    struct err e = {.text = ""};
    prom_builder_reset(&scraper.labels, (struct prom_labels){NULL, 0});
    prom_builder_set(&scraper.labels, bytes_str("__address__"), bytes_str("node0:8000"));
    guard_must(prom_target_spec_make(&job, &scraper.labels, &spec, &e) == 1, e.text);
    target = prom_target_new(&scraper, &job, &spec);
    guard_must(target, "no memory");
}

static void prepare(void)
{
    struct err e = {.text = ""};
    made_init(&owner, &receiver_prometheus,
              "config: {scrape_configs: [{job_name: guard, metric_relabel_configs: ["
              "{source_labels: [__name__], regex: model_gauge_3, action: drop}]}]}",
              &end_component, SIGNAL_METRICS);
    scraper.owner = owner.c;
    scraper.config = owner.bound;
    prom_outbox_init(&scraper.outbox, owner.c, nobody, NULL);
    scraper.mapper = prom_mapper_new("0");
    scraper.scratch = buf_new(0);
    guard_must(scraper.mapper && scraper.scratch && prom_builder_init(&scraper.labels) == 0,
               "no memory");
    guard_must(prom_job_init(&job, &scraper.config->file, scraper.config->file.scrape_configs.items,
                             &e) == 0,
               e.text);
    for (unsigned i = 0; i < ARRAY_SIZE(pages); i++)
        pages[i] = body_page(i * 12345);
    make_target();
}

static uint32_t scrape(void)
{
    struct http_client_response response = {.status = 200,
                                            .body = buf_ref(pages[scrapes++ % ARRAY_SIZE(pages)]),
                                            .content_type = "text/plain; version=0.0.4"};
    const struct page p = {.response = &response, .duration_ns = 1000000};
    target->time_ms += 1000;
    prom_scrape_finish(&scraper, target, &p);
    buf_unref(response.body);
    struct batch *b = end_take();
    guard_must(b && b->records > PAGE_SERIES / 2, "the scrape is not complete");
    batch_unref(b);
    return PAGE_SERIES;
}

static uint32_t scrape_new(void)
{
    target = prom_target_free(target);
    make_target();
    return scrape();
}

static void finish(void)
{
    prom_target_free(target);
    prom_job_done(&job);
    prom_outbox_done(&scraper.outbox);
    prom_mapper_free(scraper.mapper);
    prom_builder_done(&scraper.labels);
    buf_unref(scraper.scratch);
    free(scraper.items);
    for (unsigned i = 0; i < ARRAY_SIZE(pages); i++)
        buf_unref(pages[i]);
    made_done(&owner);
}

const struct workload workload_scrape_new = {
    .name = "scrape_new", .rounds = 1, .prepare = prepare, .round = scrape_new, .finish = finish};
const struct workload workload_scrape_known = {
    .name = "scrape_known", .rounds = 2, .prepare = prepare, .round = scrape, .finish = finish};
