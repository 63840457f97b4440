/* Acceleration and jerk at k targets by n sources, hand-vectorised over the targets: what a C
   programmer would be content with. Arrays are [component][body]. */
#include <math.h>
#include <stddef.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#define LANES 8
typedef __m512d vec;
static inline vec inverse_root(vec q) {
    vec u = _mm512_rsqrt14_pd(q), half = q * 0.5; /* 14 bits, then 28, then 56 */
    u = u * (1.5 - half * u * u);
    return u * (1.5 - half * u * u);
}
#else
#define LANES 4
typedef double vec __attribute__((vector_size(32)));
static inline vec inverse_root(vec q) {
    vec u;
    for (int i = 0; i < LANES; i++) u[i] = 1 / sqrt(q[i]);
    return u;
}
#endif

/* k must be a multiple of 8 */
void pull(const double *t, const double *s, const double *m, double *f, size_t k, size_t n) {
    for (size_t i = 0; i < k; i += LANES) {
        vec x[6], sum[6];
        for (int c = 0; c < 6; c++) {
            __builtin_memcpy(&x[c], t + c * k + i, sizeof(vec));
            sum[c] = x[c] * 0;
        }
        for (size_t j = 0; j < n; j++) {
            vec dx = s[j] - x[0], dy = s[n + j] - x[1], dz = s[2 * n + j] - x[2];
            vec du = s[3 * n + j] - x[3], dv = s[4 * n + j] - x[4], dw = s[5 * n + j] - x[5];
            vec u = inverse_root(dx * dx + dy * dy + dz * dz + 1e-30), u2 = u * u;
            vec p = m[j] * u * u2, q = 3 * (dx * du + dy * dv + dz * dw) * u2;
            sum[0] += p * dx, sum[1] += p * dy, sum[2] += p * dz;
            sum[3] += p * (du - q * dx), sum[4] += p * (dv - q * dy), sum[5] += p * (dw - q * dz);
        }
        for (int c = 0; c < 6; c++) __builtin_memcpy(f + c * k + i, &sum[c], sizeof(vec));
    }
}
