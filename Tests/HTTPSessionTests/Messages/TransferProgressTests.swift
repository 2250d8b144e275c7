import Foundation
import Testing

@testable import HTTPSession

@Suite struct TransferProgressTests {
    @Test func `a server may promise the greatest number there is`() {
        var progress = TransferProgress()
        #expect(progress.fractionCompleted == nil)
        (progress.expectedToReceive, progress.expectedToSend, progress.sent) = (.max, 10, 10)
        #expect(progress.fractionCompleted ?? 1 < 1e-10)
        (progress.received, progress.sent) = (.max, .max)
        #expect(progress.fractionCompleted == 1)
    }

    @Test func `parts that are longer together than any number are no shorter than that`() {
        let part = BodySegment.file(path: "/none", length: .max)
        #expect([part].totalLength == .max)
        #expect([part, .data(Data(count: 1))].totalLength == .max)
    }
}
