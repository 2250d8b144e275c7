import Expectations
import Testing

@testable import HTTPSession

struct ContentRangeTests {
    @Test func `Content-Range has a range, and usually a total`() {
        expectEqual(ContentRange("bytes 100-199/1000"), .satisfied(first: 100, last: 199, total: 1_000))
        expectEqual(ContentRange("Bytes 0-0/*"), .satisfied(first: 0, last: 0, total: nil))
        expectEqual(ContentRange("bytes */1000"), .unsatisfied(total: 1_000))
    }

    @Test(arguments: [
        "", "bytes", "bytes 1-2", "bytes 2-1/5", "bytes 0-5/5", "items 0-1/5", "bytes 0-1/5/6", "bytes -1/5", "bytes 0-/5",
        "bytes +0-1/5", "bytes 0-1/-5", "bytes */*", "bytes 0-99999999999999999999/*", "bytes=0-1/5",
    ]) func `an invalid Content-Range is ignored`(_ text: String) {
        expectNil(ContentRange(text))
    }
}
