/// The error of a number in a recording that no kernel, server or clock produces.
package struct RecordedNumberError: Error, Hashable {
    /// One line: the name of the number, and its range.
    package let description: String
}

/// The ranges of the numbers in a recording.
///
/// A recording may come from anybody, and a monitor computes with these numbers as with those of the kernel. A number outside of its range is an
/// error of its line.
enum RecordedRanges {
    /// Durations and monotonic times in nanoseconds: 36 years, so that sums of several do not overflow.
    static let nanoseconds: Range<Int64> = 0..<1 << 60
    /// Times of certificates in seconds since 1970: the years 0 to 9999 (RFC 5280 section 4.1.2.5).
    static let certificateSeconds: Range<Int64> = -62_167_219_200..<253_402_300_800
    /// Counts of bytes, names and certificates.
    static let count = 0..<1 << 40
    /// Error numbers (errno(3)); a kernel has at most 4095 (`MAX_ERRNO`).
    static let errno: Range<Int32> = 0..<4_096

    static func check<Number: BinaryInteger>(
        _ name: @autoclosure () -> String, _ number: Number?, _ range: Range<Number>
    ) throws(RecordedNumberError) {
        guard let number, !range.contains(number) else { return }
        throw RecordedNumberError(
            description: "'\(name())' is \(number), outside of \(range.lowerBound) to \(range.upperBound - 1)")
    }
}
