// libnl-3 and libnl-route-3 (3.7.0 or newer): netlink sockets, attributes, and the objects of rtnetlink.
#ifndef NETWATCH_CLIBNL_SHIM_H
#define NETWATCH_CLIBNL_SHIM_H

#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/object.h>
#include <netlink/socket.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/neighbour.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>

#endif
