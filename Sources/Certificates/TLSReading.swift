internal import CTLSReading

/// The limit of connections that bring nothing, for as long as the calling thread is in libcurl; `CTLSReading` says why.
package enum TLSReading {
    package static func begins() { netwatch_tls_reading_begins() }
    package static func ends() { netwatch_tls_reading_ends() }
    /// Something that was read has come out of libcurl.
    package static func noteProgress() { netwatch_tls_note_progress() }
}
