// Which instruction set a hot loop uses, decided when the program runs.
//
// A binary built for one processor must run on an older one, yet SSE2 code leaves three quarters of
// an AVX-512 machine idle. GCC compiles a function marked MW_SIMD_CLONES once per level of the
// x86-64 psABI (v4 = AVX-512, v3 = AVX2, default = SSE2), and an ifunc picks one when the program
// loads. The macro is empty, leaving the build's own ISA, where that does not work: other compilers
// and C libraries, and sanitizers, whose runtime is not yet up when an ifunc resolves.
//
// Inline helpers must be MW_ALWAYS_INLINE: a helper left as a call would keep the default ISA.
#pragma once

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && defined(__x86_64__) && \
    defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MW_SIMD_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MW_SIMD_CLONES
#endif

#define MW_ALWAYS_INLINE inline __attribute__((always_inline))
