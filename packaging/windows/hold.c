/* Holds a file as a server does, so that nobody else can open it, until its standard input ends: for trials only. */
#include <stdio.h>
#include <windows.h>

int main(int count, char **arguments)
{
    HANDLE file = INVALID_HANDLE_VALUE;
    if (count == 2)
        file = CreateFileA(arguments[1], GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING, 0, NULL);
    puts(file == INVALID_HANDLE_VALUE ? "not held" : "held");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}
