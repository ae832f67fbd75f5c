/* Relabelling: every action, templates, anchoring; and what rules are refused. */
#include "prom_rules.h"

#define DROPPED "dropped"

struct rule_case {
    const char *rules; /* a YAML list */
    const char *before, *after;
};

static void expect_case(const struct rule_case *c)
{
    struct prom_world w;
    struct label_builder b;
    struct relabel_rules *rules = NULL;
    struct err e = {.text = ""};
    char yaml[2000];
    snprintf(yaml, sizeof(yaml),
             "config: {scrape_configs: [{job_name: j, metric_relabel_configs: %s}]}", c->rules);
    if (world_read(&w, yaml) < 0)
        fail_msg("%s: %s: %s", c->rules, w.err.path, w.err.text);
    assert_int_equal(prom_relabel_new(&world_job(&w, 0)->metric_relabel_configs, &rules, &e), 0);
    assert_int_equal(prom_builder_init(&b), 0);
    builder_read(&b, c->before);
    const bool kept = prom_relabel_apply(rules, &b);
    if (kept)
        expect_labels(&b, c->after);
    else
        assert_string_equal(DROPPED, c->after);
    prom_builder_done(&b);
    prom_relabel_free(rules);
    world_done(&w);
}

static const struct rule_case cases[] = {
    /* replace */
    {"[]", "a=1", "a=1"},
    {"[{source_labels: [a], target_label: b}]", "a=1", "a=1,b=1"},
    {"[{source_labels: [a, c], target_label: b}]", "a=1,c=2", "a=1,b=1;2,c=2"},
    {"[{source_labels: [a, none, c], separator: '', target_label: b}]", "a=1,c=2", "a=1,b=12,c=2"},
    {"[{source_labels: [a], regex: 'x(.*)', target_label: b, replacement: 'y$$1'}]", "a=x1",
     "a=x1,b=y1"},
    {"[{source_labels: [a], regex: 'x(.*)', target_label: b, replacement: '$${1}y'}]", "a=x1",
     "a=x1,b=1y"},
    {"[{source_labels: [a], regex: 'x(.*)', target_label: b, replacement: '$$1y'}]", "a=x1",
     "a=x1"},
    {"[{source_labels: [a], regex: '(?P<n>.)(.*)', target_label: b, replacement: '$$2$$n'}]",
     "a=x12", "a=x12,b=12x"},
    {"[{source_labels: [a], regex: 'x', target_label: b, replacement: y}]", "a=xx", "a=xx"},
    {"[{source_labels: [a], regex: 'x|y', target_label: b, replacement: z}]", "a=xy", "a=xy"},
    {"[{source_labels: [a], regex: 'x.y', target_label: b, replacement: z}]", "a=x\ny",
     "a=x\ny,b=z"},
    {"[{source_labels: [a], regex: '(.*)', target_label: a, replacement: ''}]", "a=1,b=2", "b=2"},
    {"[{source_labels: [none], target_label: b}]", "a=1,b=2", "a=1"},
    {"[{source_labels: [none], regex: '(.+)', target_label: b}]", "a=1,b=2", "a=1,b=2"},
    {"[{target_label: b, replacement: const}]", "a=1", "a=1,b=const"},
    {"[{source_labels: [a], regex: '(.)-(.*)', target_label: 'l_$$1', replacement: '$$2'}]",
     "a=x-1", "a=x-1,l_x=1"},
    {"[{source_labels: [none], regex: '(.*)', target_label: '$$1', replacement: v}]", "a=1", "a=1"},
    {"[{source_labels: [port], target_label: p, regex: 80, replacement: 8080}]", "port=80",
     "p=8080,port=80"},
    {"[{source_labels: [a], target_label: b, replacement: '100$$$$'}]", "a=1", "a=1,b=100$"},
    /* keep, drop */
    {"[{source_labels: [a], regex: '1|2', action: keep}]", "a=1", "a=1"},
    {"[{source_labels: [a], regex: '1|2', action: keep}]", "a=12", DROPPED},
    {"[{source_labels: [a], regex: '1', action: Drop}]", "a=1", DROPPED},
    {"[{source_labels: [a], regex: '1', action: drop}]", "a=11", "a=11"},
    {"[{source_labels: [none], regex: '', action: drop}]", "a=1", DROPPED},
    {"[{source_labels: [none], action: keep}]", "a=1", "a=1"},
    /* keepequal, dropequal */
    {"[{source_labels: [a], target_label: b, action: keepequal}]", "a=1,b=1", "a=1,b=1"},
    {"[{source_labels: [a], target_label: b, action: keepequal}]", "a=1,b=2", DROPPED},
    {"[{source_labels: [a], target_label: b, action: dropequal}]", "a=1,b=1", DROPPED},
    {"[{source_labels: [a], target_label: b, action: dropequal}]", "a=1", "a=1"},
    /* hashmod: the last 8 bytes of the MD5, by other people's program */
    {"[{source_labels: [a], target_label: b, modulus: 1000, action: hashmod}]", "a=foo",
     "a=foo,b=696"},
    {"[{source_labels: [a, c], target_label: b, modulus: 7, action: hashmod}]", "a=foo,c=bar",
     "a=foo,b=6,c=bar"},
    /* labelmap, labeldrop, labelkeep */
    {"[{regex: 'meta_(.*)', action: labelmap}]", "meta_x=1,meta_y=2,z=3",
     "meta_x=1,meta_y=2,x=1,y=2,z=3"},
    {"[{regex: '(.)', replacement: 'p_$$1', action: labelmap}]", "x=1", "p_x=1,x=1"},
    {"[{regex: 'a|b', replacement: 'c', action: labelmap}]", "a=1", "a=1,c=1"},
    {"[{regex: 'x.*', action: labeldrop}]", "x=1,xy=2,yx=3", "yx=3"},
    {"[{regex: 'x.*', action: labelkeep}]", "x=1,xy=2,yx=3", "x=1,xy=2"},
    /* lowercase, uppercase */
    {"[{source_labels: [a], target_label: b, action: lowercase}]", "a=AbÄß", "a=AbÄß,b=abäß"},
    {"[{source_labels: [a], target_label: a, action: uppercase}]", "a=xyzé→", "a=XYZÉ→"},
    /* several */
    {"[{source_labels: [a], target_label: tmp}, {source_labels: [tmp], regex: '(.).*', "
     "target_label: "
     "b}, {regex: tmp, action: labeldrop}]",
     "a=word", "a=word,b=w"},
};

static void test_actions(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        expect_case(&cases[i]);
}

static void expect_refused(const char *rules, const char *path, const char *text)
{
    struct prom_world w;
    char yaml[1000];
    snprintf(yaml, sizeof(yaml), "config: {scrape_configs: [{job_name: j, relabel_configs: [%s]}]}",
             rules);
    assert_true(world_read(&w, yaml) < 0);
    if (!strstr(w.err.path, path))
        fail_msg("%s: path \"%s\", not \"%s\"", rules, w.err.path, path);
    if (!strstr(w.err.text, text))
        fail_msg("%s: \"%s\", not \"%s\"", rules, w.err.text, text);
    world_done(&w);
}

static void test_refused(void **state)
{
    (void)state;
    expect_refused("{source_labels: [a], regex: '(a', target_label: b}",
                   "relabel_configs[0]::regex", "missing closing )");
    expect_refused("{source_labels: [a], regex: '(?=a)', target_label: b}", "regex", "");
    expect_refused("{source_labels: [a], target_label: b, action: hashmod}", "[0]::action",
                   "hashmod requires non-zero modulus");
    expect_refused("{source_labels: [a]}", "[0]", "replace action requires 'target_label' value");
    expect_refused("{source_labels: [a], action: keepequal}", "[0]",
                   "requires 'target_label' value");
    expect_refused("{source_labels: [a], action: dropequal, target_label: b, regex: x}", "[0]",
                   "requires only 'source_labels' and 'target_label'");
    expect_refused("{source_labels: [a], action: lowercase, target_label: b, replacement: x}",
                   "replacement", "'replacement' can not be set for lowercase action");
    expect_refused("{source_labels: [a], action: labeldrop}", "[0]", "requires only 'regex'");
    expect_refused("{action: labelkeep, regex: x, modulus: 3}", "[0]", "requires only 'regex'");
    expect_refused("{action: explode}", "action", "");
    expect_refused("{source_labels: [a], target_label: b, action: hashmod, modulus: -1}", "modulus",
                   "");
}

static void test_renames(void **state)
{
    (void)state;
    static const char yaml[] = "config: {scrape_configs: [{job_name: j, metric_relabel_configs: "
                               "[{target_label: __name__}]},"
                               "{job_name: k, metric_relabel_configs: [{target_label: x}]}]}";
    struct prom_world w;
    struct relabel_rules *r[2];
    assert_int_equal(world_read(&w, yaml), 0);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(prom_relabel_new(&world_job(&w, i)->metric_relabel_configs, &r[i], NULL),
                         0);
    assert_true(prom_relabel_renames(r[0]));
    assert_false(prom_relabel_renames(r[1]));
    assert_false(prom_relabel_renames(NULL));
    prom_relabel_free(r[0]);
    prom_relabel_free(r[1]);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_actions),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_renames)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
