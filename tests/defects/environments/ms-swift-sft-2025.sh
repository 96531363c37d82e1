export PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True"
NPROC_PER_NODE=8 \
NNODES=$NNODES \
swift sft \
    --model Qwen/Qwen2.5-32B-Instruct \
    --train_type lora \
    --model_type qwen2_5 \
    --dataset rows.jsonl \
    --split_dataset_ratio 0 \
    --save_strategy epoch \
    --learning_rate 3e-5 \
    --torch_dtype bfloat16 \
    --output_dir out \
    --num_train_epochs 10 \
    --per_device_train_batch_size 1 \
    --gradient_accumulation_steps 1 \
    --dataloader_drop_last true \
    --save_only_model true \
    --deepspeed zero3 \
    --max_new_tokens 8192 \
    --load_from_cache_file False \
    --max_length 32000 \
    --dataset_num_proc 64 \
    --attn_impl flash_attn \
    --packing true \
    --use_liger_kernel true
