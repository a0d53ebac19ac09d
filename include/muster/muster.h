/* SPDX-License-Identifier: MIT */
/** @file
 * Everything a host needs in one include. Authors of plug-ins take plugin.h alone. */
#ifndef MUSTER_MUSTER_H
#define MUSTER_MUSTER_H

#include <muster/agent.h>
#include <muster/am.h>
#include <muster/atomic.h>
#include <muster/base.h>
#include <muster/broker.h>
#include <muster/cluster.h>
#include <muster/context.h>
#include <muster/epoch.h>
#include <muster/forwarder.h>
#include <muster/group.h>
#include <muster/manager.h>
#include <muster/memory.h>
#include <muster/message.h>
#include <muster/message_queue.h>
#include <muster/metrics.h>
#include <muster/process.h>
#include <muster/queue.h>
#include <muster/rendezvous.h>
#include <muster/rendezvous_serve.h>
#include <muster/serve.h>
#include <muster/socket.h>
#include <muster/store.h>
#include <muster/store_serve.h>
#include <muster/store_server.h>
#include <muster/stream.h>
#include <muster/trace.h>
#include <muster/transport.h>
#include <muster/worker.h>

#endif
