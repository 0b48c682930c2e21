#ifndef TRAIND_COMMON_PLAN_DECIMAL_H
#define TRAIND_COMMON_PLAN_DECIMAL_H

/* To 15 significant digits, so that decimals stay decimals when printed: 0.1 x 96 x 0.5 is 4.8. */
double plan_decimal(double x);

#endif
