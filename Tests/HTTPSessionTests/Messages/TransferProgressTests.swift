import Foundation
import Testing

@testable import HTTPSession

@Suite struct TransferProgressTests {
    @Test func `a response that promises the largest integer as length has a fraction`() {
        var progress = TransferProgress()
        #expect(progress.fractionCompleted == nil)
        (progress.expectedToReceive, progress.expectedToSend, progress.bytesSent) = (.max, 10, 10)
        #expect(progress.fractionCompleted ?? 1 < 1e-10)
        (progress.bytesReceived, progress.bytesSent) = (.max, .max)
        #expect(progress.fractionCompleted == 1)
    }

    @Test func `lengths whose sum overflows give a valid fraction`() {
        let part = BodySegment.file(path: "/none", length: .max)
        #expect([part].totalLength == .max)
        #expect([part, .data(Data(count: 1))].totalLength == .max)
    }
}
