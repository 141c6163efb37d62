// The declarations of NIOPosix that the package's modules use, named one by one. On Linux, NIOPosix exports Linux's C library,
// whose names would be ambiguous beside those of Darwin.
//
// Source: NIOPosix itself, compiled for Linux.
@_exported public import class NIOPosix.ClientBootstrap
@_exported public import class NIOPosix.MultiThreadedEventLoopGroup
@_exported public import struct NIOPosix.NIOConnectionError
@_exported public import class NIOPosix.NIOThreadPool
@_exported public import class NIOPosix.ServerBootstrap
