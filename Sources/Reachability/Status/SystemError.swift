import Glibc

/// Returns the text of strerror(3) for an errno. Safe on any thread, because it uses strerror_r(3).
package func errorText(_ number: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 128)
    guard strerror_r(number, &buffer, buffer.count) == 0 else { return "error \(number)" }
    return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
