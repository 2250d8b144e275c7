import Testing

@testable import Reachability

@Suite struct CaseSetTests {
    @Test func `each case has its own bit, in the order of declaration`() {
        #expect(KernelTable.allCases.map(\.number) == Array(0..<7))
        #expect(PathChangeReason.allCases.map(\.number) == Array(0..<10))
        #expect(Array(CaseSet<PathChangeReason>.all) == PathChangeReason.allCases)
    }

    @Test func `CaseSet has the same elements as Set`() {
        let left: CaseSet<KernelTable> = [.links, .routesV6, .addresses]
        let right: CaseSet<KernelTable> = [.routesV6, .rulesV4]
        #expect(Array(left) == [.links, .addresses, .routesV6])
        #expect(Set(left.union(right)) == Set(left).union(right))
        #expect(Set(left.intersection(right)) == [.routesV6])
        #expect(Set(left.subtracting(right)) == [.links, .addresses])
        #expect(left.isSuperset(of: [.links]) && !left.isDisjoint(with: right) && CaseSet<KernelTable>().isEmpty)
        var changing = left
        #expect(!changing.insert(.links).inserted && changing.insert(.nexthops).inserted)
        #expect(changing.remove(.links) == .links && changing.remove(.links) == nil && !changing.contains(.links))
    }
}
