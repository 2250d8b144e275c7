/// The media types of file names. The content of the file is not read.
package enum MIMEType {
    /// The type of unknown content (RFC 2046 section 4.5.1).
    package static let unknown = "application/octet-stream"

    /// The type for a file extension in upper or lower case; ``unknown`` for extensions that are not in the table.
    package static func forPathExtension(_ pathExtension: String) -> String {
        table[pathExtension.lowercased()] ?? unknown
    }

    /// The names of IANA's registry of media types, and common names for types that are not registered.
    private static let table: [String: String] = [
        "aac": "audio/aac", "aif": "audio/aiff", "aiff": "audio/aiff", "apk": "application/vnd.android.package-archive",
        "apng": "image/apng", "avi": "video/x-msvideo", "avif": "image/avif", "bin": "application/octet-stream",
        "bmp": "image/bmp", "br": "application/x-brotli", "bz2": "application/x-bzip2", "cer": "application/x-x509-ca-cert",
        "crt": "application/x-x509-ca-cert", "css": "text/css", "csv": "text/csv", "deb": "application/vnd.debian.binary-package",
        "der": "application/x-x509-ca-cert", "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "eml": "message/rfc822",
        "epub": "application/epub+zip", "flac": "audio/flac", "geojson": "application/geo+json", "gif": "image/gif",
        "gz": "application/gzip", "heic": "image/heic", "heif": "image/heif", "htm": "text/html", "html": "text/html",
        "ico": "image/vnd.microsoft.icon", "ics": "text/calendar", "jpeg": "image/jpeg", "jpg": "image/jpeg",
        "js": "text/javascript", "json": "application/json", "jsonl": "application/jsonl", "jxl": "image/jxl",
        "log": "text/plain", "m3u8": "application/vnd.apple.mpegurl", "m4a": "audio/mp4", "m4v": "video/x-m4v",
        "md": "text/markdown", "mid": "audio/midi", "mjs": "text/javascript", "mkv": "video/matroska", "mov": "video/quicktime",
        "mp3": "audio/mpeg", "mp4": "video/mp4", "mpeg": "video/mpeg", "mpg": "video/mpeg", "ndjson": "application/x-ndjson",
        "odp": "application/vnd.oasis.opendocument.presentation", "ods": "application/vnd.oasis.opendocument.spreadsheet",
        "odt": "application/vnd.oasis.opendocument.text", "oga": "audio/ogg", "ogg": "audio/ogg", "ogv": "video/ogg",
        "opus": "audio/ogg", "otf": "font/otf", "p12": "application/x-pkcs12", "pdf": "application/pdf",
        "pem": "application/x-pem-file", "pfx": "application/x-pkcs12", "plist": "application/x-plist", "png": "image/png",
        "ppt": "application/vnd.ms-powerpoint",
        "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation", "ps": "application/postscript",
        "rar": "application/vnd.rar", "rtf": "application/rtf", "sh": "application/x-sh", "sqlite": "application/vnd.sqlite3",
        "svg": "image/svg+xml", "tar": "application/x-tar", "tgz": "application/gzip", "tif": "image/tiff", "tiff": "image/tiff",
        "toml": "application/toml", "ts": "video/mp2t", "tsv": "text/tab-separated-values", "ttf": "font/ttf",
        "txt": "text/plain",
        "vcf": "text/vcard", "wasm": "application/wasm", "wav": "audio/wav", "weba": "audio/webm", "webm": "video/webm",
        "webp": "image/webp", "woff": "font/woff", "woff2": "font/woff2", "xhtml": "application/xhtml+xml",
        "xls": "application/vnd.ms-excel", "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xml": "application/xml", "xz": "application/x-xz", "yaml": "application/yaml", "yml": "application/yaml",
        "zip": "application/zip", "zst": "application/zstd", "7z": "application/x-7z-compressed",
    ]
}
