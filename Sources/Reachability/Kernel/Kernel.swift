/// The namespace of the kernel's own values: links, addresses, routes and rules, as rtnetlink(7) describes them.
///
/// ``PathMonitor/snapshot()`` and ``PathMonitor/snapshotUpdates`` return them. ``NetworkPath`` interprets them.
public enum Kernel {}

// Within this package, the kernel's values have short names.
package typealias Link = Kernel.Link
package typealias Address = Kernel.Address
package typealias Route = Kernel.Route
package typealias Rule = Kernel.Rule
package typealias NexthopObject = Kernel.NexthopObject
