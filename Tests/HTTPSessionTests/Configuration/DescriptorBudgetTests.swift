import EventLoop
import Expectations
import Glibc
import Testing

@testable import HTTPSession

@Suite struct DescriptorBudgetTests {
    @Test(
        "the maximum number of connections is limited by the available file descriptors",
        arguments: [
            (1_024, 10, 256, 256), (1_024, 10, 1_000, 496), (128, 10, 1_000, 48), (128, 10, 6, 6), (64, 20, 256, 11),
            (34, 10, 256, 1),
            (33, 10, 256, nil), (3, 3, 1, nil), (0, 0, 1, nil), (.max, 0, 10_000, 10_000),
        ])
    func connections(limit: Int, open: Int, wanted: Int, allowed: Int?) {
        expectEqual(DescriptorBudget(DescriptorUse(limit: limit, open: open)).connections(wanted), allowed)
    }

    @Test("the error for too few file descriptors names the limit, the use and the remedy")
    func error() {
        let error = DescriptorBudget(DescriptorUse(limit: 20, open: 15)).error
        #expect(error.reason.hasPrefix("15 of the 20 descriptors that the process may open are open"))
        #expect(error.reason.contains("ulimit -n") && error.context.systemError == EMFILE)
    }

    @Test("a socket that takes one of the last file descriptors is refused")
    func refusal() {
        expectNil(DescriptorBudget.refusal(of: 59, limit: 64))
        expectEqual(DescriptorBudget.refusal(of: 60, limit: 64)?.context.systemError, EMFILE)
        expectEqual(DescriptorBudget.refusal(of: 63, limit: 64)?.code, .cannotConnectToHost)
    }

    @Test("open file descriptors are counted")
    func use() throws {
        let before = DescriptorUse.now()
        // Other tests open and close descriptors meanwhile, so this test opens so many that theirs do not matter.
        var opened: [Int32] = []
        defer { for descriptor in opened { close(descriptor) } }
        for _ in 0..<2_000 { opened.append(open("/dev/null", O_RDONLY | O_CLOEXEC)) }
        try #require(opened.allSatisfy { $0 >= 0 }, "this test needs a limit of 4,096 descriptors")
        let after = DescriptorUse.now()
        expectEqual(after.limit, before.limit)
        #expect((1_500...2_500).contains(after.open - before.open))
    }
}
