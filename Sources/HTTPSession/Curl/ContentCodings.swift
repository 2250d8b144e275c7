internal import CCurl

/// The content codings (RFC 9110 section 8.4.1) that a libcurl decodes.
///
/// libcurl can write the field `Accept-Encoding` itself, but formats it twice for each request, which takes 10,000 instructions.
enum ContentCodings {
    /// The header line that requests compressed content, with the codings that libcurl writes (lib/content_encoding.c).
    ///
    /// - Parameter features: The features of the libcurl (`curl_version_info_data.features`).
    /// - Returns: The line.
    static func headerLine(features: Int32) -> String {
        var names: [String] = []
        if features & CURL_VERSION_LIBZ != 0 { names += ["deflate", "gzip"] }
        if features & CURL_VERSION_BROTLI != 0 { names.append("br") }
        if features & CURL_VERSION_ZSTD != 0 { names.append("zstd") }
        return "Accept-Encoding: \(names.isEmpty ? "identity" : names.joined(separator: ", "))"
    }
}
