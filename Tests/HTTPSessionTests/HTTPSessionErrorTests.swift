import Foundation
import HTTPSession
import Testing

@Suite struct HTTPSessionErrorTests {
    @Test func `an error names its code, its reason and its place on one line`() {
        let error = HTTPSessionError(
            .cannotFindHost, "no such host", context: .init(url: "https://example.com/a", method: "GET"))
        #expect("\(error)" == "cannot-find-host: no such host (GET https://example.com/a)")
        #expect(error.urlErrorCode == .cannotFindHost)
        #expect(error.metricLabel == "cannot-find-host")
    }
}
