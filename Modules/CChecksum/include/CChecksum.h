#ifndef CCHECKSUM_H
#define CCHECKSUM_H
#endif
