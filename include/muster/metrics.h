/* SPDX-License-Identifier: MIT */
/** @file
 * Metrics: what a process counts, as text that people read and Prometheus stores.
 *
 * The text has the process (memory, processor time, descriptors), the context (streams, bytes, handshakes) and each
 * store server, broker, agent, cluster master, socket and global memory that was made from it: one line for each
 * number, in the text format 0.0.4 of Prometheus. Names begin with `muster_`, have base units (bytes, seconds), and end
 * with `_total` where they only grow. The label `object` distinguishes the objects of one kind.
 *
 *     muster_store_server_requests_total{object="1",address="tcp://10.0.0.7:29400"} 18211
 *     muster_cluster_members{object="2",address="tcp://10.0.0.7:40113",state="joined"} 16
 *
 * Numbers are read when the text is made, without stopping anything, so two of them may be of slightly different
 * moments. Between two texts the library does no work for it.
 *
 * muster_metrics_publish() writes the text into a store at intervals, from where `muster top` shows all processes of a
 * job, and `python3 -m muster.exporter` answers Prometheus. The key is `muster/metrics/NAME`, and it has a lease: it is
 * deleted when the process ends or is silent. */
#ifndef MUSTER_METRICS_H
#define MUSTER_METRICS_H

#include <muster/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; made by muster_metrics_publish(). */
typedef struct muster_metrics muster_metrics;

/** How to publish. */
typedef struct muster_metrics_config {
    uint32_t struct_size; /**< sizeof(muster_metrics_config) of the caller. */
    uint32_t flags;       /**< Zero. */
    const void *name;     /**< Name of this process among those of the store, 1 to 255 bytes of printable text without
                               `/`; copied. NULL: host and process id, `host.1234`. */
    uint64_t name_bytes;  /**< Length of the name. */
    int64_t interval_ns;  /**< Time between two texts, 0.1 s to 1 hour; 0: 2 s. */
} muster_metrics_config;

/** State of a publication. */
typedef struct muster_metrics_state {
    uint64_t published;   /**< Texts that the store has taken. */
    uint64_t failed;      /**< Texts that it has not. */
    muster_status status; /**< Result of the last one; ::MUSTER_OK before the first. */
    uint32_t reserved;    /**< Zero. */
} muster_metrics_state;

/** Writes the metrics of a context and of its objects.
 * @param[in]  context    Context.
 * @param[out] out_text   Destination of the text, which is not NUL-terminated; NULL to get its size only.
 * @param[in]  capacity   Size of the destination.
 * @param[out] out_bytes  Length of the text. It may be larger at the next call.
 * @retval MUSTER_OK        Written, or only the size was returned.
 * @retval MUSTER_E_ARG     No context, or no destination for the length.
 * @retval MUSTER_E_LIMIT   The destination is too small; nothing was written, the length was set.
 * @retval MUSTER_E_NOMEM   Memory ran out.
 * @retval MUSTER_E_FORKED  The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_metrics_write(muster_context *context, char *out_text, size_t capacity,
                                              size_t *out_bytes);

/** Begins to publish the metrics of a context in a store, which may be of another context. A failure of the store is
 * not reported, but counted: the next text is written after the next interval. An external context publishes while its
 * host drives it.
 * @param[in]  context      Context whose metrics are published.
 * @param[in]  store        Store; kept.
 * @param[in]  config       Options; copied. NULL: all defaults.
 * @param[out] out_metrics  The publication; the caller owns one reference.
 * @param[out] error        Detail on failure, or NULL.
 * @retval MUSTER_OK        Begun.
 * @bad_config
 * @retval MUSTER_E_UNSUPPORTED  The store has no leases.
 * @retval MUSTER_E_SYSTEM  The name of the host cannot be read.
 * @retval MUSTER_E_NOMEM   Memory ran out.
 * @retval MUSTER_E_CLOSED  The context is closed.
 * @retval MUSTER_E_FORKED  The context or the store belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_metrics_publish(muster_context *context, muster_store *store,
                                                const muster_metrics_config *config, muster_metrics **out_metrics,
                                                muster_error *error);

/** Reads how a publication proceeds.
 * @param[in]  metrics    Publication.
 * @param[out] out_state  Filled.
 * @retval MUSTER_OK        Filled.
 * @retval MUSTER_E_ARG     No publication or no destination.
 * @retval MUSTER_E_FORKED  It belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_metrics_get_state(muster_metrics *metrics, muster_metrics_state *out_state);

/** Ends a publication: its key is deleted soon.
 * @param[in] metrics  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_metrics_release(muster_metrics *metrics);

#ifdef __cplusplus
}
#endif
#endif
