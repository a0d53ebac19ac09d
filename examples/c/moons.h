/* SPDX-License-Identifier: MIT */
/* What training.c and parameter_server.c train: a small network that classifies the points of two half moons. Nothing
 * here depends on processes. */
#ifndef MOONS_H
#define MOONS_H

#include <math.h>
#include <string.h>

enum { points = 900, hidden = 12, steps = 1500, dies_at = 200, parameters = 4 * hidden + 1 };

/* Sums over points: the gradient, the loss, and the number of points that were classified correctly. */
enum { sum_of_loss = parameters, sum_of_right, sums_of_points };

typedef struct model {
    double step; /* with the parameters, so that one array has all of it */
    double value[parameters], momentum[parameters];
} model;

static inline double uniform(unsigned *state) { /* the same numbers everywhere */
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) / 16777216.0;
}

/* Point i of two interleaved half moons: its coordinates and its class, 0 or 1. */
static inline int point(int i, double x[2]) {
    unsigned state = 77u + (unsigned)i * 2654435761u;
    const int class = i % 2;
    uniform(&state);
    const double angle = 3.14159265 * uniform(&state);
    x[0] = (class ? 1 - cos(angle) : cos(angle)) + 0.2 * (uniform(&state) - 0.5);
    x[1] = (class ? 0.5 - sin(angle) : sin(angle)) + 0.2 * (uniform(&state) - 0.5);
    return class;
}

static inline void start_model(model *m) {
    unsigned state = 5;
    memset(m, 0, sizeof *m);
    for (int i = 0; i < parameters; i++) m->value[i] = 2 * uniform(&state) - 1;
}

/* Adds up loss, number of right answers and gradient for the points of one share: `first`, `first` + `stride`, ... */
static inline void evaluate(const model *m, int first, int stride, double sums[sums_of_points]) {
    memset(sums, 0, sums_of_points * sizeof *sums);
    for (int i = first; i < points; i += stride) {
        double x[2], inner[hidden], output = m->value[4 * hidden];
        const int class = point(i, x);
        for (int h = 0; h < hidden; h++) {
            const double *const w = m->value + 4 * h; /* two weights, an offset, and the weight of the result */
            inner[h] = tanh(w[0] * x[0] + w[1] * x[1] + w[2]);
            output += w[3] * inner[h];
        }
        const double probability = 1 / (1 + exp(-output)), error = probability - class;
        for (int h = 0; h < hidden; h++) {
            const double back = error * m->value[4 * h + 3] * (1 - inner[h] * inner[h]);
            sums[4 * h] += back * x[0];
            sums[4 * h + 1] += back * x[1];
            sums[4 * h + 2] += back;
            sums[4 * h + 3] += error * inner[h];
        }
        sums[4 * hidden] += error;
        sums[sum_of_loss] -= log(class ? probability : 1 - probability);
        sums[sum_of_right] += (probability > 0.5) == class;
    }
}

static inline void take_step(model *m, const double sums[sums_of_points]) {
    for (int i = 0; i < parameters; i++) {
        m->momentum[i] = 0.9 * m->momentum[i] - 0.1 * sums[i] / points;
        m->value[i] += m->momentum[i];
    }
    m->step++;
}

/* The loss after all steps in one process, to compare with. */
static inline double train_alone(void) {
    model alone;
    double sums[sums_of_points];
    start_model(&alone);
    while (alone.step < steps) {
        evaluate(&alone, 0, 1, sums);
        take_step(&alone, sums);
    }
    return sums[sum_of_loss] / points;
}

#endif
