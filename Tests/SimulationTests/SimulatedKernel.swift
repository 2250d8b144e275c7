import NetlinkBytes
import Pacing

@testable import Reachability

/// One namespace of a kernel, as far as rtnetlink shows it: tables that change, the messages that a real kernel sends for the
/// changes, and changes without a message.
///
/// It behaves as Linux was measured to behave, or as its source says. When a link goes down, IPv4 routes over it, dead members of
/// multipath routes and nexthop objects are removed silently; IPv6 routes and addresses are announced. A route whose preferred
/// source is removed is removed silently. No message removes a replaced route. The loss of carrier changes no route.
struct SimulatedKernel {
    struct Entry<Value> {
        /// Dumps walk in this order, and include entries that are added later in it.
        let id: Int
        var value: Value
        /// The interfaces of dead next hops. A next hop revives with its link.
        var dead: Set<UInt32> = []
    }

    var dice: SplitMix64
    var links: [Entry<Link>] = []
    var addresses: [Entry<Address>] = []
    var routes: [Entry<Route>] = []
    var rules: [Entry<Rule>] = []
    var nexthops: [Entry<NexthopObject>] = []
    /// Removed routes that a dump may still show, with the flag RTNH_F_DEAD.
    var ghosts: [Route] = []
    /// Messages that wait in the socket's buffer.
    var queue: [[UInt8]] = []
    /// True if the buffer was full. All messages are dropped until the reader has emptied it.
    var isCongested = false
    /// The number of changes of each table, like the kernel's `cb->seq`.
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

    /// Makes the buffer overflow, as if the reader were too slow.
    mutating func congest() { isCongested = true }

    /// Empties the buffer, as the reader does.
    mutating func drained() {
        queue = []
        isCongested = false
    }

    mutating func touch(_ table: KernelTable) { generations[table, default: 0] += 1 }

    // MARK: Truth

    /// A route as the kernel shows it, without its dead next hops.
    static func shown(_ entry: Entry<Route>) -> Route {
        guard !entry.dead.isEmpty else { return entry.value }
        return entry.value.withHops(entry.value.nextHops.filter { !entry.dead.contains($0.interface) })
    }

    /// The snapshot that complete dumps of all tables would give.
    var truth: KernelSnapshot {
        var snapshot = KernelSnapshot()
        for entry in links { snapshot.apply(.link(entry.value)) }
        for entry in addresses { snapshot.apply(.address(entry.value)) }
        for entry in routes { snapshot.apply(.routeAdded(Self.shown(entry))) }
        for entry in rules { snapshot.apply(.ruleAdded(entry.value)) }
        for entry in nexthops { snapshot.apply(.nexthop(entry.value)) }
        return snapshot
    }

    func link(_ index: UInt32) -> Link? { links.first { $0.value.index == index }?.value }

    // MARK: Changes

    /// Makes one random change, or none if the kernel would refuse it.
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
