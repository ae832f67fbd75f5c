/* The program: signals and life cycle. */
#include <stdio.h>

int main(void)
{
    puts("motel " MOTEL_VERSION);
    return 0;
}
