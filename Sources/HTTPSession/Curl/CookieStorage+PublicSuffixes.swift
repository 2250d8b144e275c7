extension SessionConfiguration.CookieStorage {
    /// Whether the libcurl in use was built with libpsl, as Debian's is. If so, no server can set a cookie for a public suffix, a domain under which
    /// different owners have names (`co.uk`; publicsuffix.org). Otherwise it can, unless the domain has no dot.
    public static var knowsPublicSuffixes: Bool { CurlLibrary.hasPublicSuffixList }
}
