// Published training steps, figures with their source, for step_rows_test.cpp.
//
// SC'21: arXiv:2104.04473 table 1. Korthikanti: arXiv:2205.05198. vTrain: MICRO 2024, measured
// iteration times. BigScience: chronicles of tr11-176B. MosaicML: llm-foundry benchmarking tables.
// torchtitan: its benchmark pages. Zero Bubble: arXiv:2401.10241. SimuMax: its B200 runs.
// Megatron-Bridge: its performance summary. Notes keep what the source says of schedule and stack.
#pragma once

namespace meshwright::testing {

// clang-format off
inline constexpr const char* kPublishedSteps = R"csv(id,source,model,layers,hidden,heads,kv_heads,ffn_hidden,vocab,seq_len,num_gpus,gpus_per_node,tp,pp,vpp_norm,cp,ep,dp,zero_norm,micro_batch,global_batch,precision,recompute,sp,flash_attn,measured_step_s,tokens_per_s_per_gpu,derived_step_s,measured_peak_mem_gib,mem_unit,gated_mlp,tied_embed,framework,gpu_norm,nic_GBps_per_gpu,notes
sc21t1-0002,Megatron-LM SC21,GPT 3.6B,30,3072,32,32,12288,51200,2048,64,8,2,1,,1,,32,0,16,512,fp16,full,no,no,,,3.6974,,,0,1,Megatron-LM 2021,a100-80g,25,
sc21t1-0006,Megatron-LM SC21,GPT 76.1B,60,10240,80,80,40960,51200,2048,1024,8,8,4,3,1,,32,0,2,1792,fp16,full,no,no,,,16.0578,,,0,1,Megatron-LM 2021,a100-80g,25,
sc21t1-0007,Megatron-LM SC21,GPT 145.6B,80,12288,96,96,49152,51200,2048,1536,8,8,8,2,1,,24,0,2,2304,fp16,full,no,no,,,24.8174,,,0,1,Megatron-LM 2021,a100-80g,25,
sc21t1-0008,Megatron-LM SC21,GPT 310.1B,96,16384,128,128,65536,51200,2048,1920,8,8,16,2,1,,15,0,1,2160,fp16,full,no,no,,,37.6143,,,0,1,Megatron-LM 2021,a100-80g,25,
sc21t1-0010,Megatron-LM SC21,GPT 1008.0B,128,25600,160,160,102400,51200,2048,3072,8,8,64,1,1,,6,0,1,3072,fp16,full,no,no,,,102.63,,,0,1,Megatron-LM 2021,a100-80g,25,
korth-0005,Korthikanti et al. 2022,530B (MT-NLG),105,20480,128,128,81920,51200,2048,280,8,8,35,3,1,,1,0,1,280,fp16,full,no,no,49.05,,,,,0,1,Megatron-LM 2022,a100-80g,25,
korth-0006,Korthikanti et al. 2022,530B (MT-NLG),105,20480,128,128,81920,51200,2048,280,8,8,35,3,1,,1,0,1,280,fp16,selective,yes,no,37.83,,,,,0,1,Megatron-LM 2022,a100-80g,25,
korth-0007,Korthikanti et al. 2022,1T,128,25600,160,160,102400,51200,2048,512,8,8,64,,1,,1,0,1,512,fp16,full,no,no,94.42,,,,,0,1,Megatron-LM 2022,a100-80g,25,
vtrain-0001,vTrain,GPT 3.6B,30,3072,32,32,12288,51200,2048,64,8,1,1,1,1,,64,,8,512,fp16,full,no,no,3.5665,,,,,0,1,Megatron-DeepSpeed,a100-80g,12.5,
vtrain-0043,vTrain,GPT 39.1B,48,8192,64,64,32768,51200,2048,512,8,4,4,1,1,,32,,2,1536,fp16,full,no,no,13.8755,,,,,0,1,Megatron-DeepSpeed,a100-80g,12.5,
vtrain-0089,vTrain,GPT 175B,96,12288,96,96,49152,51200,2048,512,8,4,16,1,1,,8,,2,1536,fp16,full,no,no,54.2559,,,,,0,1,Megatron-DeepSpeed,a100-80g,12.5,
vtrain-0100,vTrain,GPT 175B,96,12288,96,96,49152,51200,2048,512,8,8,8,1,1,,8,,4,1536,fp16,full,no,no,58.2403,,,,,0,1,Megatron-DeepSpeed,a100-80g,12.5,
vtrain1-0025,vTrain,GPT L16 h2048,16,2048,16,16,8192,50257,1024,8,8,2,4,1,1,,1,,4,8,fp16,full,no,no,0.151982,,,,,0,1,Megatron-DeepSpeed,a100-80g,12.5,
vtrain1-0195,vTrain,GPT L20 h1024,20,1024,16,16,4096,50257,1024,2,8,2,1,1,1,,1,,1,8,fp16,full,no,no,0.564586,,,,,0,1,Megatron-DeepSpeed,a100-80g,12.5,
vtrain1-0372,vTrain,GPT L16 h1024,16,1024,16,16,4096,50257,1024,4,8,4,1,1,1,,1,,4,8,fp16,full,no,no,0.137746,,,,,0,1,Megatron-DeepSpeed,a100-80g,12.5,
vtrain1-0541,vTrain,GPT L16 h1024,16,1024,16,16,4096,50257,1024,8,8,8,1,1,1,,1,,1,2,fp16,full,no,no,0.164833,,,,,0,1,Megatron-DeepSpeed,a100-80g,12.5,
vtrain1-0720,vTrain,GPT L12 h2048,12,2048,16,16,8192,50257,1024,2,8,1,2,1,1,,1,,1,2,fp16,full,no,no,0.088449,,,,,0,1,Megatron-DeepSpeed,a100-80g,12.5,
vtrain1-0880,vTrain,GPT L20 h2048,20,2048,16,16,8192,50257,1024,4,8,1,2,1,1,,2,,1,8,fp16,full,no,no,0.22286,,,,,0,1,Megatron-DeepSpeed,a100-80g,12.5,
vtrain1-1087,vTrain,GPT L20 h1024,20,1024,16,16,4096,50257,1024,2,8,1,1,1,1,,2,,1,4,fp16,full,no,no,0.143405,,,,,0,1,Megatron-DeepSpeed,a100-80g,12.5,
vtrain1-1266,vTrain,GPT L24 h2048,24,2048,16,16,8192,50257,1024,8,8,4,2,1,1,,1,,1,8,fp16,full,no,no,0.351523,,,,,0,1,Megatron-DeepSpeed,a100-80g,12.5,
bloomq-0041,BigScience tr11-176B prequel,"181B (H=14336,L=72)",72,14336,,,57344,250880,2048,384,8,8,12,,1,,4,1,4,2048,fp16,full,no,no,123.69,,,49,"GB as printed, unconverted",0,1,Megatron-DeepSpeed,a100-80g,12.5,
bloomq-0085,BigScience tr11-176B prequel,"181B (H=14336,L=72)",72,14336,64,64,57344,250880,2048,384,8,8,8,,1,,6,1,4,2016,fp16,full,no,no,113.16,,,52,"GB as printed, unconverted",0,1,Megatron-DeepSpeed,a100-80g,12.5,
bloomq-0091,BigScience tr11-176B prequel,"181B (H=14336,L=72)",72,14336,64,64,57344,250880,2048,384,8,4,12,,1,,8,1,2,2048,fp16,full,no,no,110.48,,,44,"GB as printed, unconverted",0,1,Megatron-DeepSpeed,a100-80g,12.5,
mosaic-0006,MosaicML llm-foundry benchmarking,MPT-30b,48,7168,56,56,28672,50368,2048,128,8,1,1,,1,,128,3,8,1024,amp_bf16,full,no,yes,,2199,7.4507,,,0,1,PyTorch FSDP (Composer),h100-80g,50,
mosaic-0056,MosaicML llm-foundry benchmarking,MPT-1b,24,2048,16,16,8192,50368,2048,64,8,1,1,,1,,64,3,20,1280,amp_bf16,none,no,yes,,44402,0.9225,,,0,1,PyTorch FSDP (Composer),h100-80g,50,
mosaic-0064,MosaicML llm-foundry benchmarking,MPT-760m,24,1536,12,12,6144,50368,8192,8,8,1,1,,1,,8,3,6,96,amp_bf16,none,no,yes,,41825,2.3504,,,0,1,PyTorch FSDP (Composer),h100-80g,50,
mosaic-0094,MosaicML llm-foundry benchmarking,MPT-7b,32,4096,32,32,16384,50368,8192,8,8,1,1,,1,,8,3,8,128,amp_bf16,full,no,yes,,3206,40.8833,,,0,1,PyTorch FSDP (Composer),a100-80g,25,
mosaic-0118,MosaicML llm-foundry benchmarking,MPT-760m,24,1536,12,12,6144,50368,4096,8,8,1,1,,1,,8,3,12,192,amp_bf16,none,no,yes,,27351,3.5942,,,0,1,PyTorch FSDP (Composer),a100-80g,25,
mosaic-0134,MosaicML llm-foundry benchmarking,MPT-125m,12,768,12,12,3072,50368,4096,8,8,1,1,,1,,8,3,16,256,amp_bf16,none,no,yes,,118396,1.1071,,,0,1,PyTorch FSDP (Composer),a100-80g,25,
titan-0002,torchtitan benchmarks,Llama 3.1 8B,32,4096,32,8,14336,128256,8192,8,8,1,1,,1,,8,3,2,16,bf16,selective,,yes (SDPA),,6667,2.4575,77.0,GiB,1,0,torchtitan,h100-96g-hbm2e-500w,50,torch.compile
titan-0003,torchtitan benchmarks,Llama 3.1 8B,32,4096,32,8,14336,128256,8192,8,8,1,1,,1,,8,3,2,16,bf16+float8,selective,,yes (SDPA),,8532,1.9203,76.8,GiB,1,0,torchtitan,h100-96g-hbm2e-500w,50,torch.compile
titan-0012,torchtitan benchmarks,Llama 3.1 70B,80,8192,64,8,28672,128256,8192,256,8,8,1,,1,,32,3,16,512,bf16+float8,full,yes,yes (SDPA),,876,18.7032,67.6,GiB,1,0,torchtitan,h100-96g-hbm2e-500w,50,asynctp
titan-0014,torchtitan benchmarks,Llama 3.1 405B,126,16384,128,8,53248,128256,8192,512,8,8,8,,1,,8,3,,256,bf16+float8,full,yes,yes (SDPA),,128,32.0,72.7,GiB,1,0,torchtitan,h100-96g-hbm2e-500w,50,asynctp; interleaved 1f1b
titan-0034,torchtitan benchmarks,Llama 3 8B,32,4096,32,8,14336,128256,8192,64,8,1,1,,1,,64,3,1,64,bf16,selective,,yes (SDPA),,2973,2.7555,,,1,0,torchtitan,a100-80g,25,selective op
zb-0011,Zero Bubble Pipeline Parallelism,GPT-3-like 28.3B,62,6144,48,48,24576,,1024,32,8,1,32,,1,1,1,0,1,128,,,no,unknown,4.0,1024.0,4.0,74,"GB as printed, unconverted",0,1,Megatron-LM (zero-bubble fork),a100-80g,12.5,schedule zb-2p
zb-0023,Zero Bubble Pipeline Parallelism,GPT-3-like 28.3B,62,6144,48,48,24576,,1024,32,8,1,32,,1,1,1,0,1,128,,,no,unknown,4.4444,921.6,4.4444,44,"GB as printed, unconverted",0,1,Megatron-LM (zero-bubble fork),a100-80g,12.5,schedule zb-1p
zb-0035,Zero Bubble Pipeline Parallelism,GPT-3-like 28.3B,62,6144,48,48,24576,,1024,32,8,1,32,,1,1,1,0,1,128,,,no,unknown,5.0,819.2,5.0,43,"GB as printed, unconverted",0,1,Megatron-LM (zero-bubble fork),a100-80g,12.5,schedule 1f1b
simumax-0005,SimuMax v1.2 B200 real runs,deepseekv2 (L=4),4,5120,,,,,4096,8,8,1,1,,1,8,8,1,1,32,bf16,none,,yes,0.3666,,,45.63,GiB,,,Megatron-Core,b200,50,no comm overlap; fused ce
simumax-0007,SimuMax v1.2 B200 real runs,deepseekv3 (L=4),4,7168,,,,,4096,8,8,1,1,,1,8,8,1,1,32,bf16,none,,yes,0.6032,,,104.30,GiB,,,Megatron-Core,b200,50,no comm overlap; fused ce
mbridge-0075,NVIDIA Megatron-Bridge performance summary,LLAMA3_70B,80,8192,64,8,28672,128256,8192,64,4,1,4,5,1,,16,1,1,256,mxfp8,,,,,4864,6.7368,,,1,0,Megatron-Core,gb300,50,raw row:
mbridge-0080,NVIDIA Megatron-Bridge performance summary,LLAMA3_70B,80,8192,64,8,28672,128256,8192,64,4,4,8,5,1,,2,1,1,256,fp8,,,,,1664,19.6923,,,1,0,Megatron-Core,h100-80g,50,raw row: dgx-h100
mbridge-0097,NVIDIA Megatron-Bridge performance summary,Qwen3_30B_a3B,,,,,,,4096,8,4,1,1,,1,8,8,1,8,512,mxfp8,,,,,31744,8.2581,,,,,Megatron-Core,gb300,50,raw row:
mbridge-0102,NVIDIA Megatron-Bridge performance summary,Qwen3_235B_a22B,,,,,,,4096,256,4,1,4,12,1,32,64,1,2,8192,mxfp8,,,,,6944,18.8756,,,,,Megatron-Core,gb300,50,raw row:
mbridge-0108,NVIDIA Megatron-Bridge performance summary,Nemotron_3_Nano,,,,,,,8192,8,4,1,1,,1,8,8,1,4,512,mxfp8,,,,,37888,13.8378,,,,,Megatron-Core,gb300,50,raw row:
mbridge-0182,NVIDIA Megatron-Bridge performance summary,GPT OSS 120B,,,,,,,4096,64,4,1,1,,1,64,64,1,4,1280,bf16,,,,,19366,4.2301,,,,,Megatron-Core,gb300,50,raw row:
)csv";
// clang-format on

}  // namespace meshwright::testing
