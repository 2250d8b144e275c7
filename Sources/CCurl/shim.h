// libcurl, 7.88.1 or newer. Swift imports no variadic functions, so each type of argument has its own function here. The option
// is an integer, because newer options are set by number when the header does not define them yet.
#ifndef NETWATCH_CCURL_SHIM_H
#define NETWATCH_CCURL_SHIM_H

#include <curl/curl.h>

static inline CURLcode netwatch_curl_set_long(CURL *easy, int option, long value) {
    return (curl_easy_setopt)(easy, (CURLoption)option, value);
}
static inline CURLcode netwatch_curl_set_offset(CURL *easy, int option, curl_off_t value) {
    return (curl_easy_setopt)(easy, (CURLoption)option, value);
}
static inline CURLcode netwatch_curl_set_string(CURL *easy, int option, const char *value) {
    return (curl_easy_setopt)(easy, (CURLoption)option, value);
}
static inline CURLcode netwatch_curl_set_pointer(CURL *easy, int option, void *value) {
    return (curl_easy_setopt)(easy, (CURLoption)option, value);
}
static inline CURLcode netwatch_curl_set_transfer(CURL *easy, int option, size_t (*value)(char *, size_t, size_t, void *)) {
    return (curl_easy_setopt)(easy, (CURLoption)option, value);
}
static inline CURLcode netwatch_curl_set_debug(CURL *easy, int (*value)(CURL *, curl_infotype, char *, size_t, void *)) {
    return (curl_easy_setopt)(easy, CURLOPT_DEBUGFUNCTION, value);
}
static inline CURLcode netwatch_curl_set_seek(CURL *easy, int (*value)(void *, curl_off_t, int)) {
    return (curl_easy_setopt)(easy, CURLOPT_SEEKFUNCTION, value);
}
static inline CURLcode netwatch_curl_set_prereq(CURL *easy, int (*value)(void *, char *, char *, int, int)) {
    return (curl_easy_setopt)(easy, CURLOPT_PREREQFUNCTION, value);
}
static inline CURLcode netwatch_curl_set_socket_options(CURL *easy, int (*value)(void *, curl_socket_t, curlsocktype)) {
    return (curl_easy_setopt)(easy, CURLOPT_SOCKOPTFUNCTION, value);
}
static inline CURLcode netwatch_curl_set_open_socket(
    CURL *easy, curl_socket_t (*value)(void *, curlsocktype, struct curl_sockaddr *)) {
    return (curl_easy_setopt)(easy, CURLOPT_OPENSOCKETFUNCTION, value);
}
static inline CURLcode netwatch_curl_set_close_socket(CURL *easy, int (*value)(void *, curl_socket_t)) {
    return (curl_easy_setopt)(easy, CURLOPT_CLOSESOCKETFUNCTION, value);
}
static inline CURLcode netwatch_curl_set_resolver_start(CURL *easy, int (*value)(void *, void *, void *)) {
    return (curl_easy_setopt)(easy, CURLOPT_RESOLVER_START_FUNCTION, value);
}
static inline CURLcode netwatch_curl_set_ssl_context(CURL *easy, CURLcode (*value)(CURL *, void *, void *)) {
    return (curl_easy_setopt)(easy, CURLOPT_SSL_CTX_FUNCTION, value);
}

static inline CURLcode netwatch_curl_get_long(CURL *easy, int info, long *value) {
    return (curl_easy_getinfo)(easy, (CURLINFO)info, value);
}
static inline CURLcode netwatch_curl_get_offset(CURL *easy, int info, curl_off_t *value) {
    return (curl_easy_getinfo)(easy, (CURLINFO)info, value);
}
static inline CURLcode netwatch_curl_get_string(CURL *easy, int info, char **value) {
    return (curl_easy_getinfo)(easy, (CURLINFO)info, value);
}
static inline CURLcode netwatch_curl_get_socket(CURL *easy, int info, curl_socket_t *value) {
    return (curl_easy_getinfo)(easy, (CURLINFO)info, value);
}
static inline CURLcode netwatch_curl_get_pointer(CURL *easy, int info, void **value) {
    return (curl_easy_getinfo)(easy, (CURLINFO)info, value);
}

static inline CURLMcode netwatch_curl_multi_set_long(CURLM *multi, int option, long value) {
    return (curl_multi_setopt)(multi, (CURLMoption)option, value);
}
static inline CURLMcode netwatch_curl_multi_set_pointer(CURLM *multi, int option, void *value) {
    return (curl_multi_setopt)(multi, (CURLMoption)option, value);
}
static inline CURLMcode netwatch_curl_multi_set_socket(CURLM *multi, int (*value)(CURL *, curl_socket_t, int, void *, void *)) {
    return (curl_multi_setopt)(multi, CURLMOPT_SOCKETFUNCTION, value);
}
static inline CURLMcode netwatch_curl_multi_set_timer(CURLM *multi, int (*value)(CURLM *, long, void *)) {
    return (curl_multi_setopt)(multi, CURLMOPT_TIMERFUNCTION, value);
}

static inline CURLSHcode netwatch_curl_share_set_long(CURLSH *share, int option, long value) {
    return (curl_share_setopt)(share, (CURLSHoption)option, value);
}

static inline const curl_version_info_data *netwatch_curl_version(void) { return curl_version_info(CURLVERSION_NOW); }

// Macros with casts, which Swift does not import.
static const long netwatch_CURLHSTS_ENABLE = CURLHSTS_ENABLE;
static const curl_socket_t netwatch_CURL_SOCKET_TIMEOUT = CURL_SOCKET_TIMEOUT;

// A message of curl_multi_info_read contains a union, which is awkward to read from Swift.
static inline CURLcode netwatch_curl_message_result(const CURLMsg *message) { return message->data.result; }

#endif
