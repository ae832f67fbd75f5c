/* The table of all component types, alphabetical within a kind. A new component adds its two lines here. */
#include "agent/pipeline/component.h"

/* receivers */
/* processors */
/* connectors */
/* exporters */
/* extensions */

const struct component_type *const component_types[] = {
    /* receivers */
    /* processors */
    /* connectors */
    /* exporters */
    /* extensions */
    NULL,
};
