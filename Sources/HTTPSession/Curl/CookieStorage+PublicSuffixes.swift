extension SessionConfiguration.CookieStorage {
    /// Whether the libcurl in use was built with libpsl, as Debian's is: then no server can set a cookie for a domain under which
    /// others than its owner have names (`co.uk`; publicsuffix.org). Else it can, unless the domain has no dot.
    public static var knowsPublicSuffixes: Bool { CurlLibrary.hasPublicSuffixList }
}
