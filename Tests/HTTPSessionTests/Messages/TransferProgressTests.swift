import Expectations
import Foundation
import Testing

@testable import HTTPSession

@Suite struct TransferProgressTests {
    @Test func `a response that promises the largest integer as length has a fraction`() {
        var progress = TransferProgress()
        expectNil(progress.fractionCompleted)
        (progress.expectedToReceive, progress.expectedToSend, progress.bytesSent) = (.max, 10, 10)
        #expect(progress.fractionCompleted ?? 1 < 1e-10)
        (progress.bytesReceived, progress.bytesSent) = (.max, .max)
        expectEqual(progress.fractionCompleted, 1)
    }

    @Test func `lengths whose sum overflows give a valid fraction`() {
        let part = BodySegment.file(path: "/none", length: .max)
        expectEqual([part].totalLength, .max)
        expectEqual([part, .data(Data(count: 1))].totalLength, .max)
    }
}
