import NetlinkBytes
import Pacing

@testable import Reachability

/// One namespace of a kernel, as far as rtnetlink shows it: tables that change, the messages that a real kernel sends for the
/// changes, and those that it does not send.
///
/// What Linux does, measured or read: IPv4 routes, dead members of multipath routes and nexthop objects go without a word when their
/// link goes down; IPv6 routes and addresses are announced. A route whose preferred source goes, goes silently. A replaced route is
/// not removed by a message. Carrier loss changes no route.
struct SimulatedKernel {
    struct Entry<Value> {
        /// Dumps walk in this order, and see what is added behind them.
        let id: Int
        var value: Value
        /// Interfaces of next hops that are dead; they come alive again with their link.
        var dead: Set<UInt32> = []
    }

    var dice: SplitMix64
    var links: [Entry<Link>] = []
    var addresses: [Entry<Address>] = []
    var routes: [Entry<Route>] = []
    var rules: [Entry<Rule>] = []
    var nexthops: [Entry<NexthopObject>] = []
    /// Routes that a dump may still show, flagged dead.
    var ghosts: [Route] = []
    /// Messages that wait in the socket's buffer.
    var queue: [[UInt8]] = []
    /// The buffer was full: everything is dropped until the reader has emptied it.
    var isCongested = false
    /// Counts the changes of each table, as the kernel's `cb->seq` does.
    var generations: [KernelTable: Int] = [:]
    private var nextID = 1
    var nextIndex: UInt32 = 2
    var clock: UInt32 = 1

    static let queueLimit = 400
    static let linkLimit = 10

    init(seed: UInt64) {
        dice = SplitMix64(seed: seed)
        let lo = Link(
            index: 1, name: "lo", flags: [.up, .running, .lowerUp, .loopback], hardwareType: 772, mtu: 65_536,
            hardwareAddress: [0, 0, 0, 0, 0, 0])
        links.append(Entry(id: 1, value: lo))
        addresses.append(
            Entry(id: takeID(), value: Address(interface: 1, prefix: IPPrefix(IPAddress(v4: 0x7f00_0001), length: 8), scope: 254))
        )
        for _ in 0..<3 { addLink() }
        for _ in 0..<4 { change() }
        queue = []
    }

    // MARK: Dice

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &dice) < percent }
    mutating func pick<Element>(_ elements: [Element]) -> Element? { elements.randomElement(using: &dice) }

    mutating func takeID() -> Int {
        nextID += 1
        return nextID
    }

    // MARK: Messages

    mutating func send(_ message: RawMessage) {
        if isCongested { return }
        guard queue.count < Self.queueLimit else {
            isCongested = true
            return
        }
        queue.append(message.bytes)
    }

    /// The reader was too slow.
    mutating func congest() { isCongested = true }

    /// The reader has emptied the buffer.
    mutating func drained() {
        queue = []
        isCongested = false
    }

    mutating func touch(_ table: KernelTable) { generations[table, default: 0] += 1 }

    // MARK: Truth

    /// A route as the kernel would show it: without its dead next hops.
    static func shown(_ entry: Entry<Route>) -> Route {
        guard !entry.dead.isEmpty else { return entry.value }
        return entry.value.withHops(entry.value.nextHops.filter { !entry.dead.contains($0.interface) })
    }

    /// What a complete dump of everything shows.
    var truth: Kernel.Snapshot {
        var snapshot = Kernel.Snapshot()
        for entry in links { snapshot.apply(.link(entry.value)) }
        for entry in addresses { snapshot.apply(.address(entry.value)) }
        for entry in routes { snapshot.apply(.routeAdded(Self.shown(entry))) }
        for entry in rules { snapshot.apply(.ruleAdded(entry.value)) }
        for entry in nexthops { snapshot.apply(.nexthop(entry.value)) }
        return snapshot
    }

    func link(_ index: UInt32) -> Link? { links.first { $0.value.index == index }?.value }

    // MARK: Changes

    /// One change, or none where the dice ask for something that the kernel refuses.
    mutating func change() {
        switch Int.random(in: 0..<100, using: &dice) {
        case 0..<6: addLink()
        case 6..<10: if let index = randomLink() { removeLink(index) }
        case 10..<20: if let index = randomLink() { switchLink(index, up: chance(60)) }
        case 20..<28: if let index = randomLink() { setCarrier(index, chance(65)) }
        case 28..<40: addAddress()
        case 40..<46: removeAddress()
        case 46..<50: refreshAddress()
        case 50..<72: addRoute()
        case 72..<82: removeRoute()
        case 82..<86: addRule()
        case 86..<89: removeRule()
        case 89..<93: addNexthop()
        case 93..<95: removeNexthop()
        case 95..<97: alterLink()
        default: makeNoise()
        }
    }

    mutating func randomLink() -> UInt32? { pick(links.map(\.value.index).filter { $0 != 1 }) }
}
