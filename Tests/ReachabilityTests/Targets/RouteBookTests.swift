import Expectations
import Testing

@testable import Reachability

/// A host with a default route over eth0 (2), and the network 10.1.0.0/16 over wlan0 (3).
private struct Book {
    var snapshot = KernelSnapshot()
    var book = RouteBook(groupingLimit: 0)
    var now: Int64 = 0
    let localState = Transcript.Host().localState

    init() {
        apply([.routeAdded(Self.route("0.0.0.0", 0, over: 2)), .routeAdded(Self.route("10.1.0.0", 16, over: 3))])
    }

    static func route(_ address: String, _ length: UInt8, over interfaces: UInt32...) -> Route {
        let prefix = IPPrefix(IPAddress(address) ?? IPAddress(v4: 0), length: length)
        return Route(Route.Key(destination: prefix), nextHops: interfaces.map { Route.NextHop(interface: $0) })
    }

    static func query(_ address: String) -> RouteQuery { RouteQuery(IPAddress(address) ?? IPAddress(v4: 0), port: 443) }

    mutating func apply(_ changes: [KernelChange]) {
        snapshot.apply(changes)
        book.apply(changes, snapshot)
    }

    mutating func add(_ number: Int, _ addresses: String...) {
        book.move(TargetID(number), from: [], to: addresses.map(Self.query), in: snapshot)
    }

    /// Answers a query by a route over an interface. - Returns: the numbers of the targets that are notified.
    mutating func answer(_ address: String, over interface: UInt32) -> [Int] {
        let answer = RouteAnswer.route(ChosenRoute(interface: interface, source: IPAddress(v4: 0x0a00_0002)))
        return book.receive(Self.query(address), answer, in: localState, at: now).targets.map(\.number)
    }

    /// The addresses for which the kernel is asked after a change.
    mutating func check() -> [String] { book.takeCheck(at: now).map { "\($0.destination)" } }

    func isKnown(_ address: String) -> Bool { book.answer(to: Self.query(address), at: now) != nil }
}

@Suite struct RouteBookTests {
    @Test func `destinations with the same longest prefix share one answer`() {
        var book = Book()
        book.add(1, "192.0.2.1")
        book.add(2, "198.51.100.7")
        book.add(3, "10.1.2.3")
        expectEqual(book.book.groupCount, 2)
        expectEqual(book.answer("192.0.2.1", over: 2), [])
        #expect(book.isKnown("198.51.100.7") && !book.isKnown("10.1.2.3"))
    }

    @Test func `packets with a source address or a mark have an answer of their own, and share it`() {
        var book = Book()
        func query(_ address: String, mark: UInt32) -> RouteQuery {
            RouteQuery(IPAddress(address) ?? IPAddress(v4: 0), port: 443, selector: RouteSelector(mark: mark))
        }
        book.add(1, "192.0.2.1")
        for (number, mark) in [(2, 7), (3, 7), (4, 8)] as [(Int, UInt32)] {
            book.book.move(TargetID(number), from: [], to: [query("192.0.2.\(number)", mark: mark)], in: book.snapshot)
        }
        expectEqual(book.book.groupCount, 3)
        let route = RouteAnswer.route(ChosenRoute(interface: 3, source: IPAddress(v4: 0x0a00_0002)))
        _ = book.book.receive(query("192.0.2.2", mark: 7), route, in: book.localState, at: 0)
        _ = book.answer("192.0.2.1", over: 2)
        expectEqual(book.book.answer(to: query("192.0.2.3", mark: 7), at: 0), route)
        expectEqual(book.book.answer(to: query("192.0.2.4", mark: 8), at: 0), nil)
        // After a change, only the targets of the packets whose answer has changed are notified.
        book.apply([.routeAdded(Book.route("198.51.100.0", 24, over: 3))])
        let refused = RouteAnswer.refused(errno: 101)
        expectEqual(
            book.book.receive(query("192.0.2.2", mark: 7), refused, in: book.localState, at: 1).targets,
            [TargetID(2), TargetID(3)])
        expectEqual(book.answer("192.0.2.1", over: 2), [])
    }

    @Test func `an answer is used for one second`() {
        var book = Book()
        book.add(1, "192.0.2.1")
        _ = book.answer("192.0.2.1", over: 2)
        book.now = RouteBook.freshness
        #expect(book.isKnown("192.0.2.1"))
        book.now += 1
        #expect(!book.isKnown("192.0.2.1"))
    }

    @Test func `after a change each group is asked once, and only targets with a changed answer are notified`() {
        var book = Book()
        for number in 0..<100 { book.add(number, "192.0.2.\(number)") }
        for number in 100..<200 { book.add(number, "10.1.0.\(number)") }
        _ = book.answer("192.0.2.0", over: 2)
        _ = book.answer("10.1.0.100", over: 3)
        book.apply([.routeAdded(Book.route("203.0.113.0", 24, over: 3))])
        expectEqual(book.check(), ["10.1.0.100", "192.0.2.0"])
        expectEqual(book.check(), [])
        expectEqual(book.answer("10.1.0.100", over: 3), [])
        expectEqual(book.answer("192.0.2.0", over: 2), [])
        book.apply([.routeRemoved(Book.route("10.1.0.0", 16, over: 3))])
        book.now = TargetMachine.recheckGap
        // All destinations have the default route as their only prefix now.
        expectEqual(book.check(), ["192.0.2.0"])
        expectEqual(book.answer("192.0.2.0", over: 2), [])
    }

    @Test func `a changed answer notifies all members of its group`() {
        var book = Book()
        for number in 0..<3 { book.add(number, "192.0.2.\(number)") }
        _ = book.answer("192.0.2.0", over: 2)
        book.apply([.routeRemoved(Book.route("0.0.0.0", 0, over: 2)), .routeAdded(Book.route("0.0.0.0", 0, over: 3))])
        expectEqual(book.check(), ["192.0.2.0"])
        expectEqual(book.answer("192.0.2.0", over: 3), [0, 1, 2])
    }

    @Test func `a route to one member takes it out of its group`() {
        var book = Book()
        book.add(1, "192.0.2.1")
        book.add(2, "192.0.2.2")
        _ = book.answer("192.0.2.1", over: 2)
        book.apply([.routeAdded(Book.route("192.0.2.1", 32, over: 3))])
        expectEqual(book.book.groupCount, 2)
        // The group of the default route is represented by the other member now. Both groups are asked.
        expectEqual(book.check(), ["192.0.2.1", "192.0.2.2"])
        expectEqual(book.answer("192.0.2.2", over: 2), [])
        #expect(book.isKnown("192.0.2.2") && !book.isKnown("192.0.2.1"))
        expectEqual(book.answer("192.0.2.1", over: 3), [1])
    }

    @Test func `a route with several next hops gives each destination a group of its own`() {
        var book = Book()
        book.apply([.routeRemoved(Book.route("0.0.0.0", 0, over: 2)), .routeAdded(Book.route("0.0.0.0", 0, over: 2, 3))])
        for number in 0..<10 { book.add(number, "192.0.2.\(number)") }
        expectEqual(book.book.groupCount, 10)
    }

    @Test func `a target that joins a group with another answer is notified`() {
        var book = Book()
        book.add(1, "192.0.2.1")
        book.add(2, "10.1.2.3")
        _ = book.answer("192.0.2.1", over: 2)
        _ = book.answer("10.1.2.3", over: 3)
        book.apply([.routeRemoved(Book.route("10.1.0.0", 16, over: 3))])
        expectEqual(book.book.groupCount, 1)
        expectEqual(book.book.takeMoved().map(\.number), [2])
        #expect(!book.book.hasMoved)
    }

    @Test func `destinations are grouped when there are many, and a later refusal notifies each target`() {
        var book = Book()
        book.book = RouteBook(groupingLimit: 3)
        for number in 1...3 {
            book.add(number, "192.0.2.\(number)")
            _ = book.answer("192.0.2.\(number)", over: 2)
        }
        book.add(4, "192.0.2.4")
        expectEqual(book.book.groupCount, 1)
        expectEqual(book.check(), ["192.0.2.1"])
        let refusal = RouteAnswer.refused(errno: SystemErrorNumber.networkUnreachable.rawValue)
        let notified = book.book.receive(Book.query("192.0.2.1"), refusal, in: book.localState, at: 0)
        #expect(notified.targets.map(\.number) == [1, 2, 3, 4] && !notified.isOpen)
    }

    @Test func `a rule with a destination separates the destinations that it matches`() {
        var book = Book()
        book.add(1, "192.0.2.1")
        book.add(2, "198.51.100.7")
        expectEqual(book.book.groupCount, 1)
        let rule = Rule(
            family: .v4, priority: 100, table: 99, destination: IPPrefix(IPAddress("192.0.2.0") ?? IPAddress(v4: 0), length: 24))
        book.apply([.ruleAdded(rule)])
        expectEqual(book.book.groupCount, 2)
        book.apply([.ruleRemoved(rule)])
        expectEqual(book.book.groupCount, 1)
    }

    @Test func `a query that the kernel does not answer is asked again after the gap`() {
        var book = Book()
        book.add(1, "192.0.2.1")
        _ = book.answer("192.0.2.1", over: 2)
        book.apply([.routeAdded(Book.route("203.0.113.0", 24, over: 3))])
        expectEqual(book.check(), ["192.0.2.1"])
        expectEqual(book.book.receive(Book.query("192.0.2.1"), .unanswered, in: book.localState, at: 0).targets, [])
        expectEqual(book.check(), [])
        book.now = TargetMachine.recheckGap
        expectEqual(book.check(), ["192.0.2.1"])
    }

    @Test func `removed targets leave no group behind`() {
        var book = Book()
        for number in 0..<200 { book.add(number, "192.0.2.\(number)") }
        for number in 0..<200 {
            book.book.move(TargetID(number), from: [Book.query("192.0.2.\(number)")], to: [], in: book.snapshot)
        }
        expectEqual(book.book.groupCount, 0)
        expectEqual(book.check(), [])
    }
}
