/// The kernel's own values of one network namespace: links, addresses, routes and rules, as rtnetlink(7) describes them.
///
/// ``PathMonitor/snapshot()`` and ``PathMonitor/snapshotUpdates`` have them. ``NetworkPath`` says what they mean.
public enum Kernel {}

// Within this package the kernel's values have their short names.
package typealias Link = Kernel.Link
package typealias Address = Kernel.Address
package typealias Route = Kernel.Route
package typealias Rule = Kernel.Rule
package typealias NexthopObject = Kernel.NexthopObject
