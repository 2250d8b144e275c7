import Expectations
import Testing

@testable import Reachability

@Suite struct CaseSetTests {
    @Test func `each case has its own bit, in the order of declaration`() {
        expectEqual(KernelTable.allCases.map(\.number), Array(0..<7))
        expectEqual(PathChangeReason.allCases.map(\.number), Array(0..<10))
        expectEqual(Array(CaseSet<PathChangeReason>.all), PathChangeReason.allCases)
    }

    @Test func `CaseSet has the same elements as Set`() {
        let left: CaseSet<KernelTable> = [.links, .routesV6, .addresses]
        let right: CaseSet<KernelTable> = [.routesV6, .rulesV4]
        expectEqual(Array(left), [.links, .addresses, .routesV6])
        expectEqual(Set(left.union(right)), Set(left).union(right))
        expectEqual(Set(left.intersection(right)), [.routesV6])
        expectEqual(Set(left.subtracting(right)), [.links, .addresses])
        #expect(left.isSuperset(of: [.links]) && !left.isDisjoint(with: right) && CaseSet<KernelTable>().isEmpty)
        var changing = left
        #expect(!changing.insert(.links).inserted && changing.insert(.nexthops).inserted)
        #expect(changing.remove(.links) == .links && changing.remove(.links) == nil && !changing.contains(.links))
    }
}
